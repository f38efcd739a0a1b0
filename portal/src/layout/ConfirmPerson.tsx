import { useMutation, useQuery } from '@tanstack/react-query'
import { Fingerprint } from 'lucide-react'
import { useEffect, useState, type FormEvent } from 'react'
import {
  api,
  goToProvider,
  identitiesQuery,
  passkeysQuery,
  problemOf,
  secondFactorQuery,
  setConfirmer,
  showPasskey,
} from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { TextField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'

type Settle = (confirmed: boolean) => void

/** Asks for the password, or a code, when the service wants it before a change. The change then goes on by itself. */
export function ConfirmPerson() {
  const [settle, setSettle] = useState<Settle | null>(null)
  const [secret, setSecret] = useState('')
  const factor = useQuery({ ...secondFactorQuery, enabled: settle !== null })
  const passkeys = useQuery({ ...passkeysQuery, enabled: settle !== null })
  const identities = useQuery({ ...identitiesQuery, enabled: settle !== null })
  const isCode = factor.data?.totp ?? false
  const leaving = useMutation({
    mutationFn: (provider: { id: string; name: string }) =>
      goToProvider(provider, { purpose: 'confirm', next: window.location.pathname }),
  })
  useEffect(() => {
    setConfirmer(() => new Promise<boolean>((resolve) => setSettle(() => resolve)))
    return () => setConfirmer(() => Promise.resolve(false))
  }, [])
  const confirmation = useMutation({
    mutationFn: async (by: 'typed' | 'passkey') => {
      if (by === 'passkey') return api.confirmPerson({ passkey: await showPasskey() })
      return api.confirmPerson(isCode ? { code: secret } : { password: secret })
    },
    onSuccess: () => end(true),
  })
  const end = (confirmed: boolean) => {
    settle?.(confirmed)
    setSettle(null)
    setSecret('')
    confirmation.reset()
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    event.stopPropagation()
    if (secret) confirmation.mutate('typed')
  }
  const code = confirmation.error === null ? '' : problemOf(confirmation.error).code
  const isTyped = confirmation.variables === 'typed'
  const isWrong = isTyped && (code === 'credentials_invalid' || code === 'second_factor_wrong')
  return (
    <Dialog
      open={settle !== null && !factor.isPending}
      onOpenChange={(next) => !next && end(false)}
      title="Is it still you?"
      description="Keys, members and billing change only after you have shown it within the last 15 minutes."
    >
      <form onSubmit={submit} className="space-y-4">
        <TextField
          label={isCode ? 'Code of your authenticator' : 'Password'}
          type={isCode ? 'text' : 'password'}
          inputMode={isCode ? 'numeric' : undefined}
          autoComplete={isCode ? 'one-time-code' : 'current-password'}
          value={secret}
          onChange={(event) => setSecret(event.target.value)}
          error={isWrong ? (isCode ? 'This code does not work.' : 'This is not your password.') : undefined}
        />
        {confirmation.error && !isWrong && <ProblemNotice error={confirmation.error} />}
        <div className="flex flex-wrap justify-end gap-2">
          {(passkeys.data?.length ?? 0) > 0 && (
            <Button
              variant="secondary"
              icon={<Fingerprint aria-hidden className="size-4" />}
              busy={confirmation.isPending && !isTyped}
              onClick={() => confirmation.mutate('passkey')}
            >
              Use a passkey
            </Button>
          )}
          <Button type="submit" busy={confirmation.isPending && isTyped}>
            Go on
          </Button>
        </div>
        {identities.data?.map(({ id, provider, provider_name }) => (
          <Button
            key={id}
            variant="quiet"
            className="w-full"
            onClick={() => leaving.mutate({ id: provider, name: provider_name })}
          >
            Show it to {provider_name}, then begin the change again
          </Button>
        ))}
        {leaving.error && <ProblemNotice error={leaving.error} />}
      </form>
    </Dialog>
  )
}
