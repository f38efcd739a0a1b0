import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { createColumnHelper } from '@tanstack/react-table'
import { lendingQuery, sharingQuery, type Lent } from '@/api'
import { count, latency, rate } from '@/format/quantity'
import { word } from '@/format/words'
import { DataTable } from '@/ui/DataTable'
import { Listing } from '@/ui/Listing'
import { Card, EmptyState, Figure, PageHeader, Titled } from '@/ui/Surface'
import { Ago } from '@/ui/Time'
import { usePageTitle } from '@/ui/title'
import { GuaranteesSection } from './GuaranteesSection'

const column = createColumnHelper<Lent>()

/** The controller's grants: what each group may use above its SLA, and what bounded it. */
export function SharingPage() {
  usePageTitle('Sharing')
  const round = useQuery(sharingQuery)
  const found = useInfiniteQuery(lendingQuery)
  return (
    <>
      <PageHeader
        title="Sharing"
        description="Idle capacity, given to groups that want more than they reserved, each interval anew."
      />
      {round.data && (
        <Card className="mb-6 p-5">
          <dl className="grid grid-cols-2 gap-6 sm:grid-cols-4">
            <Figure label="Policy">{round.data.policy}</Figure>
            <Figure label="Groups that want more">{count(round.data.groups_wanting)}</Figure>
            <Figure label="Have all that they want">{count(round.data.groups_satisfied)}</Figure>
            <Figure label="The last round took" note={round.data.ended_at && <Ago at={round.data.ended_at} />}>
              {latency(round.data.took_us)}
            </Figure>
          </dl>
        </Card>
      )}
      <GuaranteesSection />
      <Listing
        what="the grants"
        query={found}
        more="More groups"
        empty={
          <EmptyState title="No grants now">Servers tell of them every half minute while groups want more.</EmptyState>
        }
      >
        {(grants) => (
          <Titled title="Grants of groups" description="As their heads last reported them.">
            <DataTable caption="Grants of groups" columns={COLUMNS} rows={grants} rowId={(grant) => grant.group_id} />
          </Titled>
        )}
      </Listing>
    </>
  )
}

const COLUMNS = [
  column.accessor('group_id', {
    header: 'Group',
    cell: ({ getValue }) => <code className="font-mono text-[13px] break-all">{getValue()}</code>,
  }),
  column.accessor('server_name', {
    header: 'Head on',
    meta: { wide: true },
    cell: ({ row }) => row.original.server_name ?? `server ${String(row.original.server_id)}`,
  }),
  column.accessor('borrowed_per_s', {
    header: 'Above its SLA',
    meta: { align: 'right' },
    cell: ({ getValue }) => <span className="nums">{rate(getValue())}</span>,
  }),
  column.accessor('lent_per_s', {
    header: 'Left to others',
    meta: { align: 'right' },
    cell: ({ getValue }) => <span className="nums">{rate(getValue())}</span>,
  }),
  column.accessor('bounded_by', {
    header: 'Bounded by',
    meta: { wide: true },
    cell: ({ getValue }) => {
      const bound = getValue()
      return bound === null ? <span className="text-ink-3">nothing</span> : word(bound)
    },
  }),
]
