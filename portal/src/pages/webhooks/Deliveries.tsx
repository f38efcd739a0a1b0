import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import { createColumnHelper } from '@tanstack/react-table'
import { api, deliveriesQuery, keys, type Delivery } from '@/api'
import { count } from '@/format/quantity'
import { Button } from '@/ui/Button'
import { DataTable } from '@/ui/DataTable'
import { LoadFailed, ProblemNotice } from '@/ui/Notice'
import { Badge } from '@/ui/StatusBadge'
import { Loading, Skeleton } from '@/ui/Surface'
import { Ago } from '@/ui/Time'
import { labelOf } from './eventTypes'

const column = createColumnHelper<Delivery>()

/** Each event that the webhook was to get, and how that went. */
export function Deliveries({ webhookId }: { webhookId: string }) {
  const queries = useQueryClient()
  const found = useInfiniteQuery(deliveriesQuery(webhookId))
  const rows = found.data?.pages.flatMap((page) => page.items) ?? []
  const resending = useMutation({
    mutationFn: (delivery: Delivery) => api.resendDelivery(webhookId, delivery.id),
    onSuccess: () => queries.invalidateQueries({ queryKey: [...keys.webhooks, webhookId] }),
  })
  return (
    <section aria-labelledby="deliveries">
      <h2 id="deliveries" className="mt-8 mb-3 text-[15px] font-semibold">
        Deliveries
      </h2>
      {found.isPending && (
        <Loading label="Loading deliveries">
          <Skeleton className="h-40 w-full rounded-2xl" />
        </Loading>
      )}
      {found.error && !found.data && (
        <LoadFailed what="the deliveries" error={found.error} retry={() => void found.refetch()} />
      )}
      {resending.error && <ProblemNotice error={resending.error} />}
      {found.data && rows.length === 0 && (
        <p className="rounded-2xl border border-dashed border-line-strong px-6 py-8 text-center text-sm text-ink-2">
          No event yet. Send a test to see one arrive.
        </p>
      )}
      {rows.length > 0 && (
        <DataTable
          caption="Deliveries of this webhook"
          columns={[...COLUMNS, resend((delivery) => resending.mutate(delivery))]}
          rows={rows}
          rowId={(delivery) => delivery.id}
        />
      )}
      {found.hasNextPage && (
        <div className="mt-4 flex justify-center">
          <Button variant="secondary" busy={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>
            Earlier deliveries
          </Button>
        </div>
      )}
    </section>
  )
}

const COLUMNS = [
  column.accessor('event_type', {
    header: 'Event',
    cell: ({ row: { original: delivery } }) => (
      <>
        <span className="font-medium">{labelOf(delivery.event_type)}</span>
        <code className="mt-0.5 block font-mono text-xs break-all text-ink-3">{delivery.event_id}</code>
        {delivery.last_error && <span className="mt-1 block text-[13px] text-ink-2">{delivery.last_error}</span>}
      </>
    ),
  }),
  column.accessor('event_at', {
    header: 'When',
    meta: { wide: true },
    cell: ({ getValue }) => (
      <span className="text-ink-2">
        <Ago at={getValue()} />
      </span>
    ),
  }),
  column.accessor('last_duration_ms', {
    header: 'Answer',
    meta: { wide: true },
    cell: ({ row: { original: delivery } }) => <span className="nums text-ink-2">{answerOf(delivery)}</span>,
  }),
  column.accessor('status', {
    header: 'Status',
    cell: ({ row: { original: delivery } }) => <DeliveryBadge delivery={delivery} />,
  }),
]

function resend(onResend: (delivery: Delivery) => void) {
  return column.display({
    id: 'actions',
    header: () => <span className="sr-only">Actions</span>,
    meta: { align: 'right' },
    cell: ({ row: { original: delivery } }) => (
      <Button
        variant="quiet"
        size="small"
        className="-mr-3"
        aria-label={`Send ${delivery.event_id} again`}
        onClick={() => onResend(delivery)}
      >
        Send again
      </Button>
    ),
  })
}

function answerOf({ last_http_status, last_duration_ms }: Delivery): string {
  if (last_duration_ms === null) return '–'
  const after = `${count(last_duration_ms)} ms`
  return last_http_status === null ? `none, ${after}` : `${String(last_http_status)}, ${after}`
}

function DeliveryBadge({ delivery }: { delivery: Delivery }) {
  if (delivery.status === 'delivered') return <Badge tone="good">Delivered</Badge>
  if (delivery.status === 'failed') return <Badge tone="danger">Failed</Badge>
  if (delivery.last_at === null) return <Badge tone="busy">Waiting</Badge>
  return (
    <span className="inline-flex flex-col items-start gap-1">
      <Badge tone="warn">Trying again</Badge>
      {delivery.next_at && (
        <span className="text-xs text-ink-3">
          <Ago at={delivery.next_at} />
        </span>
      )}
    </span>
  )
}
