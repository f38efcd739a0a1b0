import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import { api, keys, webhookQuery, type Webhook } from '@/api'
import { Button } from '@/ui/Button'
import { LoadFailed, Notice, ProblemNotice } from '@/ui/Notice'
import { Loading, PageHeader, Skeleton } from '@/ui/Surface'
import { Ago } from '@/ui/Time'
import { usePageTitle } from '@/ui/title'
import { DeleteWebhookDialog } from './DeleteWebhookDialog'
import { Deliveries } from './Deliveries'
import { EditWebhookDialog } from './EditWebhookDialog'
import { inWords } from './eventTypes'
import { RotateSecretDialog } from './RotateSecretDialog'
import { WebhookBadge } from './WebhookBadge'

const route = getRouteApi('/app/webhooks/$webhookId')

export function WebhookPage() {
  usePageTitle('Webhook')
  const { webhookId } = route.useParams()
  const found = useQuery(webhookQuery(webhookId))
  return (
    <>
      <Link to="/webhooks" className="mb-3 inline-block rounded text-sm text-ink-2 hover:text-ink">
        ← Webhooks
      </Link>
      {found.isPending && (
        <Loading label="Loading the webhook">
          <Skeleton className="h-40 w-full rounded-2xl" />
        </Loading>
      )}
      {found.error && !found.data && (
        <LoadFailed what="the webhook" error={found.error} retry={() => void found.refetch()} />
      )}
      {found.data && <Found webhook={found.data} />}
    </>
  )
}

type Open = 'edit' | 'rotate' | 'delete' | null

function Found({ webhook }: { webhook: Webhook }) {
  const queries = useQueryClient()
  const [open, setOpen] = useState<Open>(null)
  const refresh = () => queries.invalidateQueries({ queryKey: [...keys.webhooks, webhook.id] })
  const test = useMutation({ mutationFn: () => api.testWebhook(webhook.id), onSuccess: refresh })
  const status = useMutation({
    mutationFn: (next: 'enabled' | 'paused') => {
      const { id, url, description, event_types } = webhook
      return api.changeWebhook({ id, url, description, event_types, status: next })
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: keys.webhooks }),
  })
  const replay = useMutation({
    mutationFn: () => api.replayWebhook(webhook.id, webhook.created_at),
    onSuccess: refresh,
  })
  const change = (which: Open) => (next: boolean) => setOpen(next ? which : null)
  const error = test.error ?? status.error ?? replay.error
  return (
    <>
      <PageHeader
        title={<span className="break-all">{webhook.url}</span>}
        description={
          <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <WebhookBadge webhook={webhook} />
            <span>{inWords(webhook.event_types)}</span>
            {webhook.description && <span className="text-ink-3">{webhook.description}</span>}
          </span>
        }
        actions={
          <>
            <Button busy={test.isPending} onClick={() => test.mutate()}>
              Send a test
            </Button>
            <Button variant="secondary" onClick={() => setOpen('edit')}>
              Change
            </Button>
            <Button variant="secondary" onClick={() => setOpen('rotate')}>
              Rotate secret
            </Button>
            <Button
              variant="secondary"
              busy={status.isPending}
              onClick={() => status.mutate(webhook.status === 'enabled' ? 'paused' : 'enabled')}
            >
              {webhook.status === 'enabled' ? 'Pause' : 'Enable'}
            </Button>
            <Button variant="secondary" onClick={() => setOpen('delete')}>
              Delete
            </Button>
          </>
        }
      />
      {error && <ProblemNotice error={error} />}
      {webhook.former_secret_until && (
        <Notice tone="info" title="Two secrets sign at present">
          The former one ends <Ago at={webhook.former_secret_until} />.
        </Notice>
      )}
      {webhook.status === 'disabled' && (
        <Notice tone="danger" title="We have stopped sending events">
          The receiver answered 410, or took nothing for five days. Mend it, enable the webhook, then send what it
          missed.
        </Notice>
      )}
      <Deliveries webhookId={webhook.id} />
      <div className="mt-6 flex flex-wrap items-center gap-3 text-sm text-ink-2">
        <Button variant="secondary" size="small" busy={replay.isPending} onClick={() => replay.mutate()}>
          Send what it missed
        </Button>
        <span role="status">
          {replay.data
            ? `${String(replay.data.count)} events wait to be sent.`
            : 'Events of the last 30 days that failed, or came while it was paused or disabled.'}
        </span>
      </div>
      <EditWebhookDialog webhook={webhook} open={open === 'edit'} onOpenChange={change('edit')} />
      <RotateSecretDialog webhook={webhook} open={open === 'rotate'} onOpenChange={change('rotate')} />
      <DeleteWebhookDialog webhook={webhook} open={open === 'delete'} onOpenChange={change('delete')} />
    </>
  )
}
