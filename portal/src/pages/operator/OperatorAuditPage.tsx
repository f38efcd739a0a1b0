import { useInfiniteQuery, useMutation } from '@tanstack/react-query'
import { createColumnHelper } from '@tanstack/react-table'
import { Download } from 'lucide-react'
import { api, operatorEventsQuery, type OperatorEvent } from '@/api'
import { Button } from '@/ui/Button'
import { DataTable } from '@/ui/DataTable'
import { Listing } from '@/ui/Listing'
import { ProblemNotice } from '@/ui/Notice'
import { saveFile } from '@/ui/saveFile'
import { EmptyState, PageHeader } from '@/ui/Surface'
import { Ago } from '@/ui/Time'
import { usePageTitle } from '@/ui/title'

const column = createColumnHelper<OperatorEvent>()

export function OperatorAuditPage() {
  usePageTitle('Operators’ audit log')
  const found = useInfiniteQuery(operatorEventsQuery)
  const exporting = useMutation({
    mutationFn: async () => saveFile(await api.exportOperatorLog(), 'quorate-operators.jsonl'),
  })
  return (
    <>
      <PageHeader
        title="Audit log"
        description="Each change that an operator made, by whom and from where. Nobody can rewrite it."
        actions={
          <Button
            variant="secondary"
            icon={<Download aria-hidden className="size-4" />}
            busy={exporting.isPending}
            onClick={() => exporting.mutate()}
          >
            Export
          </Button>
        }
      />
      {exporting.error && <ProblemNotice error={exporting.error} />}
      <Listing
        what="the audit log"
        query={found}
        more="Earlier changes"
        empty={<EmptyState title="No changes yet">They appear here as they are made.</EmptyState>}
      >
        {(events) => (
          <DataTable
            caption="Changes by operators"
            columns={COLUMNS}
            rows={events}
            rowId={(event) => String(event.seq)}
          />
        )}
      </Listing>
    </>
  )
}

const COLUMNS = [
  column.accessor('operator', {
    header: 'Who',
    cell: ({ row: { original: event } }) => (
      <>
        <span className="font-medium">{event.operator}</span>
        <span className="mt-0.5 block text-xs text-ink-3">{event.address}</span>
      </>
    ),
  }),
  column.accessor('operation', {
    header: 'What',
    cell: ({ row: { original: event } }) => (
      <>
        {event.operation.replaceAll('_', ' ')}
        <code className="mt-0.5 block font-mono text-xs break-all text-ink-3">{event.subject}</code>
        {event.request !== null && (
          <code className="mt-0.5 block font-mono text-xs break-all text-ink-3">{JSON.stringify(event.request)}</code>
        )}
      </>
    ),
  }),
  column.accessor('at', {
    header: 'When',
    meta: { align: 'right' },
    cell: ({ getValue }) => (
      <span className="text-ink-2">
        <Ago at={getValue()} />
      </span>
    ),
  }),
]
