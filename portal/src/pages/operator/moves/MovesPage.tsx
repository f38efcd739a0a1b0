import { useQuery } from '@tanstack/react-query'
import { createColumnHelper } from '@tanstack/react-table'
import { balanceQuery, serversQuery, type MovingGroup, type Pressure, type RateChange } from '@/api'
import { compact, count } from '@/format/quantity'
import { word } from '@/format/words'
import { DataTable } from '@/ui/DataTable'
import { LoadFailed } from '@/ui/Notice'
import { Card, EmptyState, Figure, Loading, PageHeader, Skeleton, Titled } from '@/ui/Surface'
import { Ago } from '@/ui/Time'
import { usePageTitle } from '@/ui/title'
import { lackingInWords, stepsOf, whyItMoves, type NameOf } from './moves'

/** Rates and replicas that follow the load: the present moves with their reasons, and what leads to the next ones. */
export function MovesPage() {
  usePageTitle('Moves')
  const found = useQuery(balanceQuery)
  const servers = useQuery(serversQuery)
  const nameOf: NameOf = (id) => servers.data?.find((each) => each.server_id === id)?.name ?? `server ${String(id)}`
  return (
    <>
      <PageHeader
        title="Moves"
        description="Partitions get their rates by what they want, and replicas leave servers that lack room. Move a single one from the page of its server."
      />
      {found.isPending && (
        <Loading label="Loading moves">
          <Skeleton className="h-64 w-full rounded-2xl" />
        </Loading>
      )}
      {found.error && !found.data && (
        <LoadFailed what="the moves" error={found.error} retry={() => void found.refetch()} />
      )}
      {found.data && (
        <div className="space-y-8">
          <Card className="p-5">
            <dl className="grid grid-cols-2 gap-6 sm:grid-cols-4">
              <Figure label="Groups that move">{count(found.data.moves.length)}</Figure>
              <Figure label="Servers that lack room">{count(found.data.pressures.length)}</Figure>
              <Figure label="Partitions looked at">{count(found.data.partitions)}</Figure>
              <Figure label="Rounds" note={found.data.ended_at && <Ago at={found.data.ended_at} />}>
                {count(found.data.rounds)}
              </Figure>
            </dl>
          </Card>
          <Titled title="Moving now">
            {found.data.moves.length === 0 ? (
              <EmptyState title="No replica moves">Drains are on the page of the fleet.</EmptyState>
            ) : (
              <DataTable
                caption="Groups whose replicas move"
                columns={moving(nameOf)}
                rows={found.data.moves}
                rowId={(row) => row.group_id}
              />
            )}
          </Titled>
          {found.data.pressures.length > 0 && (
            <Titled
              title="Servers that lack room"
              description="If it lasts for three rounds, about nine seconds, a replica moves away."
            >
              <DataTable
                caption="Servers that lack room"
                columns={pressed(nameOf)}
                rows={found.data.pressures}
                rowId={(row) => `${String(row.server_id)} ${row.cause} ${row.partition ?? ''}`}
              />
            </Titled>
          )}
          {found.data.rate_changes.length > 0 && (
            <Titled title="Rates of partitions" description="Divided anew by what each wants, newest first.">
              <DataTable
                caption="Changes of partitions’ rates"
                columns={CHANGED}
                rows={found.data.rate_changes}
                rowId={(row) => `${row.at} ${row.group_id}`}
              />
            </Titled>
          )}
        </div>
      )}
    </>
  )
}

const ofMoving = createColumnHelper<MovingGroup>()
const ofPressure = createColumnHelper<Pressure>()
const ofChange = createColumnHelper<RateChange>()

function moving(nameOf: NameOf) {
  return [
    ofMoving.accessor('group_id', { header: 'Group', cell: ({ getValue }) => <Id>{getValue()}</Id> }),
    ofMoving.display({
      id: 'steps',
      header: 'Moves',
      cell: ({ row }) => stepsOf(row.original.relocation, nameOf),
    }),
    ofMoving.display({
      id: 'cause',
      header: 'Why',
      meta: { wide: true },
      cell: ({ row }) => <span className="text-ink-2">{whyItMoves(row.original.relocation.cause)}</span>,
    }),
    ofMoving.display({
      id: 'since',
      header: 'Since',
      meta: { align: 'right' },
      cell: ({ row }) => <Ago at={row.original.relocation.since} />,
    }),
  ]
}

function pressed(nameOf: NameOf) {
  return [
    ofPressure.accessor('server_id', {
      header: 'Server',
      cell: ({ getValue }) => <span className="font-medium">{nameOf(getValue())}</span>,
    }),
    ofPressure.accessor('cause', {
      header: 'Why',
      cell: ({ row: { original } }) =>
        original.cause === 'demand' ? 'A partition wants more than is free' : word(original.cause),
    }),
    ofPressure.accessor('partition', {
      header: 'Partition',
      meta: { wide: true },
      cell: ({ getValue }) => (getValue() ? <Id>{getValue()}</Id> : <span className="text-ink-3">any</span>),
    }),
    ofPressure.accessor('lacking', {
      header: 'Lacks',
      meta: { align: 'right' },
      cell: ({ getValue }) => <span className="nums">{lackingInWords(getValue())}</span>,
    }),
  ]
}

const CHANGED = [
  ofChange.accessor('group_id', { header: 'Group', cell: ({ getValue }) => <Id>{getValue()}</Id> }),
  ofChange.accessor('rates', {
    header: 'Appends a second, by partition',
    cell: ({ getValue }) => <span className="nums">{getValue().map(compact).join(' · ')}</span>,
  }),
  ofChange.accessor('is_swapped', {
    header: 'With others',
    meta: { wide: true },
    cell: ({ getValue }) => <span className="text-ink-2">{getValue() ? 'Another group’s rates, too' : 'Alone'}</span>,
  }),
  ofChange.accessor('at', {
    header: 'When',
    meta: { align: 'right' },
    cell: ({ getValue }) => <Ago at={getValue()} />,
  }),
]

function Id({ children }: { children: string | null }) {
  return <code className="font-mono text-[13px] break-all">{children}</code>
}
