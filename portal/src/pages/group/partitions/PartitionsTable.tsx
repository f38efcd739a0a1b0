import { Link } from '@tanstack/react-router'
import { createColumnHelper } from '@tanstack/react-table'
import type { GroupPartitions, PlacedPartition } from '@/api'
import { money } from '@/format/money'
import { rate } from '@/format/quantity'
import { DataTable } from '@/ui/DataTable'
import { Meter } from '@/ui/Meter'
import { Badge, StatusBadge } from '@/ui/StatusBadge'
import { wantsMore } from './partitions'

const column = createColumnHelper<PlacedPartition>()

interface Props {
  partitions: GroupPartitions
  currency: string
  projectId: string
}

/** The partitions, each with its chain in order. */
export function PartitionsTable({ partitions, currency, projectId }: Props) {
  return (
    <DataTable
      caption="Partitions, their servers and their parts of the SLA"
      columns={columns(currency, projectId, partitions.items.length > 1)}
      rows={partitions.items}
      rowId={(partition) => partition.group_id}
    />
  )
}

function columns(currency: string, projectId: string, isDivided: boolean) {
  return [
    column.accessor('partition', {
      header: 'Partition',
      cell: ({ row }) => {
        const { partition, group_id } = row.original
        // The first one has the id of the group: its page is this group's.
        if (!isDivided || partition === 0) return <span className="nums font-medium">{partition}</span>
        return (
          <Link
            to="/projects/$projectId/groups/$groupId"
            params={{ projectId, groupId: group_id }}
            className="nums font-medium hover:underline"
          >
            {partition}
          </Link>
        )
      },
    }),
    column.accessor('status', {
      header: 'Status',
      cell: ({ row }) =>
        row.original.in_use ? <StatusBadge status={row.original.status} /> : <Badge tone="busy">Being added</Badge>,
    }),
    column.accessor('replicas', {
      header: 'Servers, head first',
      meta: { wide: true },
      cell: ({ row }) => <Chain partition={row.original} />,
    }),
    column.accessor('wanted_per_s', {
      header: 'Load now',
      meta: { align: 'right' },
      cell: ({ row }) => <Load partition={row.original} />,
    }),
    column.accessor('rate_per_s', {
      header: 'Reserved',
      meta: { align: 'right', wide: true },
      cell: ({ getValue }) => <span className="nums text-ink-2">{rate(getValue())}</span>,
    }),
    column.accessor('hourly_micros', {
      header: 'An hour',
      meta: { align: 'right', wide: true },
      cell: ({ getValue }) => <span className="nums text-ink-2">{money(getValue(), currency)}</span>,
    }),
  ]
}

function Load({ partition }: { partition: PlacedPartition }) {
  const wanted = partition.wanted_per_s
  if (wanted === null) return <span className="text-ink-3">–</span>
  const more = wantsMore(partition)
  return (
    <span className="nums inline-flex flex-col items-end gap-1">
      {rate(wanted)}
      <Meter part={wanted / partition.rate_per_s} tone={more ? 'warn' : 'accent'} />
      {more && (
        <Badge tone="warn" title="Clients would append more than is reserved for this partition.">
          wants more
        </Badge>
      )}
    </span>
  )
}

function Chain({ partition }: { partition: PlacedPartition }) {
  if (partition.replicas.length === 0) return <span className="text-ink-3">none now</span>
  return (
    <span className="text-ink-2">
      {partition.replicas.map((replica, position) => (
        <span key={replica.server_id} className={replica.alive ? undefined : 'text-danger-text line-through'}>
          {position > 0 && <span className="text-ink-3"> → </span>}
          {replica.server_name}
        </span>
      ))}
      {partition.learners.map((learner) => (
        <span key={learner.server_id} className="text-ink-3">
          {' '}
          · {learner.server_name} is catching up
        </span>
      ))}
      {partition.relocation && <span className="text-ink-3"> · a replica moves</span>}
    </span>
  )
}
