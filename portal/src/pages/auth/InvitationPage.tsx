import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useRouter } from '@tanstack/react-router'
import { Fingerprint } from 'lucide-react'
import { useState, type FormEvent, type ReactNode } from 'react'
import { api, fieldMessage, invitedQuery, joinWithPasskey, meQuery, problemOf, type Invited } from '@/api'
import { word } from '@/format/words'
import { Button, buttonClass } from '@/ui/Button'
import { TextField } from '@/ui/Field'
import { Notice, ProblemNotice } from '@/ui/Notice'
import { Skeleton } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { deviceOf } from '../account/device'
import { AuthFrame } from './AuthFrame'
import { linkSecret } from './linkSecret'
import { Or } from './Or'
import { ProviderButtons } from './provider/ProviderButtons'

export function InvitationPage() {
  usePageTitle('Invitation')
  const [token] = useState(() => linkSecret(window.location.hash))
  const found = useQuery(invitedQuery(token))
  if (!token)
    return (
      <Frame title="Invitation">
        <Notice tone="warn" title="The link was cut short">
          Open it as it stands in the mail, to its end.
        </Notice>
      </Frame>
    )
  if (found.error)
    return (
      <Frame title="Invitation">
        <Notice tone="warn" title={problemOf(found.error).title}>
          Ask whoever invited you for another one. {problemOf(found.error).status === 429 && found.error.message}
        </Notice>
      </Frame>
    )
  if (!found.data)
    return (
      <Frame title="Invitation">
        <Skeleton className="h-10 w-full" />
      </Frame>
    )
  return (
    <Frame title={`Join ${found.data.organization_name}`} invited={found.data}>
      {found.data.has_account ? <WithAccount token={token} invited={found.data} /> : <AsNew token={token} />}
    </Frame>
  )
}

function Frame({ title, invited, children }: { title: string; invited?: Invited; children: ReactNode }) {
  return (
    <AuthFrame
      title={title}
      lead={invited ? `You are invited as ${word(invited.role).toLowerCase()}, with ${invited.email}.` : ''}
      footer=""
    >
      {children}
    </AuthFrame>
  )
}

/** Every query of the former organization, if there was one, is void afterwards. */
function useEnter() {
  const queries = useQueryClient()
  const router = useRouter()
  return () => {
    queries.clear()
    router.history.push('/')
  }
}

function AsNew({ token }: { token: string }) {
  const [password, setPassword] = useState('')
  const enter = useEnter()
  const acceptance = useMutation({
    mutationFn: () => api.acceptInvitationAsNew({ token, password }),
    onSuccess: enter,
  })
  const joining = useMutation({
    mutationFn: () => joinWithPasskey(token, deviceOf(navigator.userAgent)),
    onSuccess: enter,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (password) acceptance.mutate()
  }
  const wrongPassword = fieldMessage(acceptance.error, 'password')
  return (
    <form noValidate onSubmit={submit} className="space-y-4">
      <TextField
        label="Password for your new account"
        type="password"
        autoComplete="new-password"
        hint="At least 10 characters, of any kind."
        value={password}
        onChange={(event) => setPassword(event.target.value)}
        error={wrongPassword && 'Use at least 10 characters.'}
      />
      {acceptance.error && !wrongPassword && <ProblemNotice error={acceptance.error} />}
      <Button type="submit" busy={acceptance.isPending} className="mt-2 w-full">
        Accept
      </Button>
      <Or />
      <Button
        variant="secondary"
        className="w-full"
        icon={<Fingerprint aria-hidden className="size-4" />}
        busy={joining.isPending}
        onClick={() => joining.mutate()}
      >
        Accept with a passkey
      </Button>
      {joining.error && <ProblemNotice error={joining.error} />}
      <ProviderButtons verb="Accept" errand={() => ({ purpose: 'join', next: token })} />
    </form>
  )
}

function WithAccount({ token, invited }: { token: string; invited: Invited }) {
  const me = useQuery({ ...meQuery, retry: false })
  const acceptance = useMutation({ mutationFn: () => api.acceptInvitation(token), onSuccess: useEnter() })
  if (me.isPending) return <Skeleton className="h-10 w-full" />
  if (me.data?.user?.email !== invited.email)
    return (
      <Notice
        tone="info"
        title="You have an account"
        action={
          <Link to="/login" search={{ next: `/invitation#${token}` }} className={buttonClass()}>
            Log in
          </Link>
        }
      >
        Log in with {invited.email}, then accept.
      </Notice>
    )
  return (
    <>
      {acceptance.error && <ProblemNotice error={acceptance.error} />}
      <Button className="w-full" busy={acceptance.isPending} onClick={() => acceptance.mutate()}>
        Accept
      </Button>
    </>
  )
}
