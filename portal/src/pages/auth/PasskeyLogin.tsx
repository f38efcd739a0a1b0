import { useMutation } from '@tanstack/react-query'
import { Fingerprint } from 'lucide-react'
import { api, showPasskey } from '@/api'
import { Button } from '@/ui/Button'
import { ProblemNotice } from '@/ui/Notice'

/** Logs in without e-mail and password: the browser knows whose passkey it is. */
export function PasskeyLogin({ onLoggedIn }: { onLoggedIn: () => void }) {
  const login = useMutation({
    mutationFn: async () => api.logInWithPasskey(await showPasskey()),
    onSuccess: onLoggedIn,
  })
  return (
    <div className="space-y-4">
      <p className="flex items-center gap-3 text-[13px] text-ink-3 before:h-px before:flex-1 before:bg-line after:h-px after:flex-1 after:bg-line">
        or
      </p>
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
