import { useMutation } from '@tanstack/react-query'
import { Fingerprint } from 'lucide-react'
import { api, showPasskey } from '@/api'
import { Button } from '@/ui/Button'
import { ProblemNotice } from '@/ui/Notice'
import { Or } from './Or'

/** Logs in without e-mail and password: the browser knows whose passkey it is. */
export function PasskeyLogin({ onLoggedIn }: { onLoggedIn: () => void }) {
  const login = useMutation({
    mutationFn: async () => api.logInWithPasskey(await showPasskey()),
    onSuccess: onLoggedIn,
  })
  return (
    <div className="space-y-4">
      <Or />
      <Button
        variant="secondary"
        className="w-full"
        icon={<Fingerprint aria-hidden className="size-4" />}
        busy={login.isPending}
        onClick={() => login.mutate()}
      >
        Log in with a passkey
      </Button>
      {login.error && <ProblemNotice error={login.error} />}
    </div>
  )
}
