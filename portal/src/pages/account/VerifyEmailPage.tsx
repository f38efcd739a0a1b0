import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { api, keys, problemOf } from '@/api'
import { linkSecret } from '@/pages/auth/linkSecret'
import { buttonClass } from '@/ui/Button'
import { Notice } from '@/ui/Notice'
import { Loading, PageHeader, Skeleton } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { SendLink } from './SendLink'

export function VerifyEmailPage() {
  usePageTitle('Verify your address')
  const queries = useQueryClient()
  const [token] = useState(() => linkSecret(window.location.hash))
  const { mutate: verify, ...verification } = useMutation({
    mutationFn: api.verifyEmail,
    onSuccess: () => queries.invalidateQueries({ queryKey: keys.me }),
  })
  useEffect(() => {
    if (token) verify(token)
  }, [token, verify])
  return (
    <div className="max-w-xl">
      <PageHeader title="Verify your address" />
      {verification.isSuccess ? (
        <Notice
          tone="good"
          title="Your address is verified"
          announce
          action={
            <Link to="/" className={buttonClass()}>
              Go to your groups
            </Link>
          }
        >
          Your organization has its full quota now.
        </Notice>
      ) : verification.error || !token ? (
        <Notice
          tone="warn"
          title={token ? 'The link does not work' : 'The link was cut short'}
          announce
          action={<SendLink />}
        >
          {token ? problemOf(verification.error).detail : 'Open it as it stands in the mail, to its end.'}
        </Notice>
      ) : (
        <Loading label="Verifying">
          <Skeleton className="h-16 w-full" />
        </Loading>
      )}
    </div>
  )
}
