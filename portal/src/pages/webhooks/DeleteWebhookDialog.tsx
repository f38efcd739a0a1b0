import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { api, keys, type Webhook } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { ProblemNotice } from '@/ui/Notice'

interface Props {
  webhook: Webhook
  open: boolean
  onOpenChange: (open: boolean) => void
}

export function DeleteWebhookDialog({ webhook, open, onOpenChange }: Props) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const deletion = useMutation({
    mutationFn: () => api.deleteWebhook(webhook.id),
    onSuccess: async () => {
      await navigate({ to: '/webhooks' })
      queries.removeQueries({ queryKey: [...keys.webhooks, webhook.id] })
      await queries.invalidateQueries({ queryKey: keys.webhooks })
    },
  })
  return (
    <Dialog
      open={open}
      onOpenChange={(next) => {
        deletion.reset()
        onOpenChange(next)
      }}
      title="Delete the webhook?"
      description="Waiting events are not sent, and its list of deliveries is gone. To stop it for a while, pause it."
    >
      {deletion.error && <ProblemNotice error={deletion.error} />}
      <div className="mt-4 flex flex-wrap justify-end gap-2">
        <Button variant="secondary" onClick={() => onOpenChange(false)}>
          Keep it
        </Button>
        <Button variant="danger" busy={deletion.isPending} onClick={() => deletion.mutate()}>
          Delete webhook
        </Button>
      </div>
    </Dialog>
  )
}
