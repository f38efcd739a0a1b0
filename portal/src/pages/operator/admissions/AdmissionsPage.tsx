import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { createColumnHelper } from '@tanstack/react-table'
import { admissionsQuery, type Admission } from '@/api'
import { Segmented } from '@/ui/Choice'
import { DataTable } from '@/ui/DataTable'
import { Listing } from '@/ui/Listing'
import { Badge } from '@/ui/StatusBadge'
import { EmptyState, PageHeader } from '@/ui/Surface'
import { Ago } from '@/ui/Time'
import { usePageTitle } from '@/ui/title'
import { askedText, reasonText } from './admissions'
import { Reasons } from './Reasons'
import { OrganizationLink } from '../organizations/OrganizationLink'

const route = getRouteApi('/operator/admissions')
const column = createColumnHelper<Admission>()
const SHOWN = [
  { value: 'all', label: 'All' },
  { value: 'refused', label: 'Refused' },
] as const

export function AdmissionsPage() {
  usePageTitle('Admissions')
  const { only, hours = 24 } = route.useSearch()
  const navigate = route.useNavigate()
  const found = useInfiniteQuery(admissionsQuery(only ?? null))
  return (
    <>
      <PageHeader
        title="Admissions"
        description="What customers asked the fleet to promise, and why it said no. Kept for 90 days."
      />
      <Reasons hours={hours} onHours={(chosen) => void navigate({ search: { only, hours: chosen }, replace: true })} />
      <div className="mt-8 mb-4">
        <Segmented
          legend="Show"
          value={only ?? 'all'}
          options={SHOWN}
          onChange={(value) =>
            void navigate({ search: { hours, only: value === 'all' ? undefined : value }, replace: true })
          }
        />
      </div>
      <Listing
        what="the admissions"
        query={found}
        more="Earlier ones"
        empty={<EmptyState title="None yet">They appear here as customers ask for groups.</EmptyState>}
      >
        {(rows) => <DataTable caption="Admissions" columns={COLUMNS} rows={rows} rowId={(row) => row.id} />}
      </Listing>
    </>
  )
}

const COLUMNS = [
  column.accessor('outcome', {
    header: 'Answer',
    cell: ({ getValue }) => (
      <Badge tone={getValue() === 'admitted' ? 'good' : 'danger'}>
        {getValue() === 'admitted' ? 'Admitted' : 'Refused'}
      </Badge>
    ),
  }),
  column.display({
    id: 'asked',
    header: 'Asked for',
    cell: ({ row: { original } }) => (
      <>
        <span className="font-medium break-words">{askedText(original)}</span>
        {original.message && <span className="mt-0.5 block max-w-lg text-[13px] text-ink-3">{original.message}</span>}
      </>
    ),
  }),
  column.display({
    id: 'reason',
    header: 'Reason',
    meta: { wide: true },
    cell: ({ row: { original } }) => (original.outcome === 'refused' ? reasonText(original) : null),
  }),
  column.accessor('organization_name', {
    header: 'Organization',
    meta: { wide: true },
    cell: ({ row: { original } }) => (
      <OrganizationLink id={original.organization_id} name={original.organization_name} />
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
