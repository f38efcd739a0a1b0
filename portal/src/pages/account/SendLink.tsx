import { useMutation } from '@tanstack/react-query'
import { api } from '@/api'
import { Button } from '@/ui/Button'
import { ProblemNotice } from '@/ui/Notice'

/** Has the link mailed once more that verifies the address. */
export function SendLink() {
  const sending = useMutation({ mutationFn: api.sendVerification })
  if (sending.error) return <ProblemNotice error={sending.error} />
  if (sending.isSuccess)
    return (
      <p role="status" className="text-sm text-ink-2">
        Sent. Open the link in this browser; it works for a day.
      </p>
    )
  return (
    <Button variant="secondary" size="small" busy={sending.isPending} onClick={() => sending.mutate()}>
      Send the link again
    </Button>
  )
}
