import { createColumnHelper } from '@tanstack/react-table'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { Glance, Group } from '@/api'
import { moneyShort } from '@/format/money'
import { bytes, count, rate } from '@/format/quantity'
import { minutesLong } from '@/format/time'
import { replicas, word } from '@/format/words'
import { DataTable } from '@/ui/DataTable'
import { Meter } from '@/ui/Meter'
import { GroupBadge } from '@/ui/StatusBadge'
import { Ago } from '@/ui/Time'

const route = getRouteApi('/app/projects/$projectId/groups')
/** A group with its glance, which comes a moment later. */
export type Listed = Group & { glance: Glance | undefined }
const column = createColumnHelper<Listed>()
const NEARLY_FULL = 0.9
const NO_GLANCE: Pick<Glance, 'appends_per_s' | 'bad_minutes'> = { appends_per_s: 0, bad_minutes: 0 }

const COLUMNS = [
  column.accessor('name', { id: 'name', header: 'Name', cell: ({ row }) => <Name group={row.original} /> }),
  column.accessor('status', {
    header: 'Status',
    enableSorting: false,
    cell: ({ row }) => <GroupBadge group={row.original} />,
  }),
  column.display({
    id: 'sla',
    header: 'SLA',
    meta: { wide: true },
    cell: ({ row }) => <span className="text-ink-2">{describe(row.original)}</span>,
  }),
  column.accessor('sla.rate_per_s', {
    id: 'rate',
    header: 'Reserved',
    meta: { align: 'right', wide: true },
    sortDescFirst: true,
    cell: ({ getValue }) => (
      <>
        {count(getValue())}
        <span className="text-ink-3">/s</span>
      </>
    ),
  }),
  column.display({
    id: 'use',
    header: 'In use',
    meta: { wide: true },
    cell: ({ row }) => <Use group={row.original} />,
  }),
  column.display({
    id: 'bad',
    header: 'SLA, 24 h',
    meta: { wide: true },
    cell: ({ row }) => <BadMinutes group={row.original} />,
  }),
  column.accessor('price.monthly_micros', {
    id: 'cost',
    header: 'Per month',
    meta: { align: 'right' },
    sortDescFirst: true,
    cell: ({ row }) => moneyShort(row.original.price.monthly_micros, row.original.price.currency),
  }),
  column.accessor('created_at', {
    id: 'created',
    header: 'Created',
    meta: { align: 'right', wide: true },
    sortDescFirst: true,
    cell: ({ getValue }) => (
      <span className="text-ink-2">
        <Ago at={getValue()} />
      </span>
    ),
  }),
]

type SortId = 'name' | 'rate' | 'cost' | 'created'

export function GroupsTable({ groups }: { groups: Listed[] }) {
  const { sort, desc } = route.useSearch()
  const navigate = route.useNavigate()
  return (
    <DataTable
      caption="Groups of this project"
      columns={COLUMNS}
      rows={groups}
      rowId={(group) => group.id}
      sorting={sort ? [{ id: sort, desc: desc ?? false }] : []}
      onSortingChange={([first]) =>
        void navigate({
          search: (old) => ({ ...old, sort: first?.id as SortId | undefined, desc: first?.desc || undefined }),
          replace: true,
        })
      }
    />
  )
}

export function describe({ sla }: Group): string {
  return `${word(sla.durability)}, ${replicas(sla.replication_degree)}, ${bytes(sla.request_size_bytes)}`
}

function Use({ group }: { group: Listed }) {
  const { sla } = group
  const glance = group.glance ?? NO_GLANCE
  const share = glance.appends_per_s / sla.rate_per_s
  return (
    <span className="flex items-center gap-3">
      <Meter part={share} tone={share >= NEARLY_FULL ? 'warn' : 'accent'} />
      <span className="nums text-ink-2">{rate(Math.round(glance.appends_per_s))}</span>
    </span>
  )
}

function BadMinutes({ group }: { group: Listed }) {
  const { bad_minutes } = group.glance ?? NO_GLANCE
  if (group.status === 'lost' || group.status === 'provisioning') return null
  if (bad_minutes === 0) return <span className="text-ink-3">Kept</span>
  return <span className="text-danger-text">{minutesLong(bad_minutes)} missed</span>
}

/** The link covers its whole row, so that the row is one large target. */
function Name({ group }: { group: Group }) {
  return (
    <>
      <Link
        to="/projects/$projectId/groups/$groupId"
        params={{ projectId: group.project_id, groupId: group.id }}
        className="row-link font-medium after:absolute after:inset-0"
      >
        {group.name}
      </Link>
      <span className="mt-0.5 block text-[13px] text-ink-3 md:hidden">
        {count(group.sla.rate_per_s)}/s, {replicas(group.sla.replication_degree)}
      </span>
    </>
  )
}
