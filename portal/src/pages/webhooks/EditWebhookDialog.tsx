import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, fieldMessage, keys, type Webhook } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { ProblemNotice } from '@/ui/Notice'
import { bodyOf, lackOf, WebhookFields, type WebhookForm } from './WebhookFields'

interface Props {
  webhook: Webhook
  open: boolean
  onOpenChange: (open: boolean) => void
}

export function EditWebhookDialog({ webhook, open, onOpenChange }: Props) {
  const queries = useQueryClient()
  const [form, setForm] = useState(() => formOf(webhook))
  const change = useMutation({
    mutationFn: () => {
      // A change enables a webhook that the service has disabled: its owner has looked after it.
      const status = webhook.status === 'paused' ? 'paused' : 'enabled'
      return api.changeWebhook({ id: webhook.id, ...bodyOf(form), status })
    },
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: keys.webhooks })
      onOpenChange(false)
    },
  })
  const lacking = lackOf(form)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!lacking) change.mutate()
  }
  const wrongUrl = fieldMessage(change.error, 'url')
  return (
    <Dialog
      open={open}
      onOpenChange={(next) => {
        change.reset()
        setForm(formOf(webhook))
        onOpenChange(next)
      }}
      title="Change the webhook"
    >
      <form noValidate onSubmit={submit} className="space-y-4">
        <WebhookFields value={form} onChange={setForm} wrongUrl={wrongUrl} />
        {change.error && !wrongUrl && <ProblemNotice error={change.error} />}
        <div className="flex justify-end">
          <Button type="submit" busy={change.isPending} disabledReason={lacking}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function formOf({ url, description, event_types }: Webhook): WebhookForm {
  return { url, description, all: event_types.length === 0, types: event_types }
}
