import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState, type FormEvent } from 'react'
import { api, fieldMessage, keys } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { ProblemNotice } from '@/ui/Notice'
import { SecretOnce } from '@/ui/SecretOnce'
import { bodyOf, EMPTY, lackOf, WebhookFields } from './WebhookFields'

export function NewWebhookDialog({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const [form, setForm] = useState(EMPTY)
  const creation = useMutation({
    mutationFn: () => api.createWebhook(bodyOf(form)),
    onSuccess: () => void queries.invalidateQueries({ queryKey: keys.webhooks }),
  })
  const change = (next: boolean) => {
    onOpenChange(next)
    if (next) return
    const made = creation.data
    setForm(EMPTY)
    creation.reset()
    if (made) void navigate({ to: '/webhooks/$webhookId', params: { webhookId: made.id } })
  }
  const lacking = lackOf(form)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!lacking) creation.mutate()
  }
  const wrongUrl = fieldMessage(creation.error, 'url')
  return (
    <Dialog open={open} onOpenChange={change} title={creation.data ? 'The webhook is ready' : 'New webhook'}>
      {creation.data ? (
        <>
          <SecretOnce
            what="secret"
            secret={creation.data.secret}
            note="With it your receiver checks that an event comes from us."
          />
          <div className="mt-5 flex justify-end">
            <Button onClick={() => change(false)}>I have kept it</Button>
          </div>
        </>
      ) : (
        <form noValidate onSubmit={submit} className="space-y-4">
          <WebhookFields value={form} onChange={setForm} wrongUrl={wrongUrl} />
          {creation.error && !wrongUrl && <ProblemNotice error={creation.error} />}
          <div className="flex justify-end">
            <Button type="submit" busy={creation.isPending} disabledReason={lacking}>
              Create webhook
            </Button>
          </div>
        </form>
      )}
    </Dialog>
  )
}
