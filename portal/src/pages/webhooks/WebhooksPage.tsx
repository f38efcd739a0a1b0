import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { createColumnHelper } from '@tanstack/react-table'
import { Plus, Webhook as Picture } from 'lucide-react'
import { useState } from 'react'
import { webhooksQuery, type Webhook } from '@/api'
import { Button } from '@/ui/Button'
import { DataTable } from '@/ui/DataTable'
import { LoadFailed } from '@/ui/Notice'
import { EmptyState, Loading, PageHeader, Skeleton } from '@/ui/Surface'
import { Ago } from '@/ui/Time'
import { usePageTitle } from '@/ui/title'
import { inWords } from './eventTypes'
import { NewWebhookDialog } from './NewWebhookDialog'
import { WebhookBadge } from './WebhookBadge'

const column = createColumnHelper<Webhook>()

export function WebhooksPage() {
  usePageTitle('Webhooks')
  const found = useQuery(webhooksQuery)
  const [creating, setCreating] = useState(false)
  const make = (
    <Button icon={<Plus aria-hidden className="size-4" />} onClick={() => setCreating(true)}>
      New webhook
    </Button>
  )
  return (
    <>
      <PageHeader
        title="Webhooks"
        description="We tell your programs what happens, as it happens: each event is signed, and tried for three days."
        actions={found.data?.length ? make : undefined}
      />
      {found.isPending && (
        <Loading label="Loading webhooks">
          <Skeleton className="h-40 w-full rounded-2xl" />
        </Loading>
      )}
      {found.error && !found.data && (
        <LoadFailed what="the webhooks" error={found.error} retry={() => void found.refetch()} />
      )}
      {found.data?.length === 0 && (
        <EmptyState title="No webhooks yet" picture={<Picture aria-hidden className="size-8" />} action={make}>
          Have a chat, a pager or a program of yours told of groups that degrade, spend caps that act, invoices, and
          changes that somebody makes.
        </EmptyState>
      )}
      {found.data && found.data.length > 0 && (
        <DataTable caption="Webhooks" columns={COLUMNS} rows={found.data} rowId={(webhook) => webhook.id} />
      )}
      <NewWebhookDialog open={creating} onOpenChange={setCreating} />
    </>
  )
}

const COLUMNS = [
  column.accessor('url', {
    header: 'URL',
    cell: ({ row: { original: webhook } }) => (
      <>
        <Link
          to="/webhooks/$webhookId"
          params={{ webhookId: webhook.id }}
          className="row-link rounded font-medium break-all after:absolute after:inset-0"
        >
          {webhook.url}
        </Link>
        {webhook.description && <span className="mt-0.5 block text-xs text-ink-3">{webhook.description}</span>}
      </>
    ),
  }),
  column.accessor('event_types', {
    header: 'Gets',
    meta: { wide: true },
    cell: ({ getValue }) => <span className="text-ink-2">{inWords(getValue())}</span>,
  }),
  column.accessor('created_at', {
    header: 'Created',
    meta: { wide: true },
    cell: ({ getValue }) => (
      <span className="text-ink-2">
        <Ago at={getValue()} />
      </span>
    ),
  }),
  column.display({
    id: 'status',
    header: 'Status',
    cell: ({ row }) => <WebhookBadge webhook={row.original} />,
  }),
]
