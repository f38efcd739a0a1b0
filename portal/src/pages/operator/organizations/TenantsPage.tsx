import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { createColumnHelper } from '@tanstack/react-table'
import { useState } from 'react'
import { tenantsQuery, type Tenant } from '@/api'
import { money } from '@/format/money'
import { count, rate } from '@/format/quantity'
import { Button } from '@/ui/Button'
import { DataTable } from '@/ui/DataTable'
import { TextField } from '@/ui/Field'
import { LoadFailed } from '@/ui/Notice'
import { useRested } from '@/ui/rested'
import { Badge } from '@/ui/StatusBadge'
import { EmptyState, Loading, PageHeader, Skeleton } from '@/ui/Surface'
import { Ago } from '@/ui/Time'
import { usePageTitle } from '@/ui/title'
import { SuspensionDialog } from './SuspensionDialog'

const route = getRouteApi('/operator/organizations')
const column = createColumnHelper<Tenant>()
const CURRENCY = 'USD'
const TONES = { active: 'good', suspended: 'danger', closing: 'warn', closed: 'plain' } as const
const WORDS = { active: 'Active', suspended: 'Suspended', closing: 'Closing', closed: 'Closed' }

export function TenantsPage() {
  usePageTitle('Organizations')
  const { q = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const found = useInfiniteQuery(tenantsQuery(useRested(q.trim())))
  const [chosen, setChosen] = useState<Tenant | null>(null)
  const tenants = found.data?.pages.flatMap((page) => page.items) ?? []
  return (
    <>
      <PageHeader title="Organizations" description="Who has reserved what, newest first." />
      <div className="mb-5 max-w-md">
        <TextField
          label="Search"
          type="search"
          placeholder="A part of the name, an id, or a member’s address"
          value={q}
          onChange={(event) =>
            void navigate({ search: event.target.value ? { q: event.target.value } : {}, replace: true })
          }
        />
      </div>
      {found.isPending && (
        <Loading label="Loading organizations">
          <Skeleton className="h-64 w-full rounded-2xl" />
        </Loading>
      )}
      {found.error && !found.data && (
        <LoadFailed what="the organizations" error={found.error} retry={() => void found.refetch()} />
      )}
      {found.data && tenants.length === 0 && (
        <EmptyState title="None found">Try a part of the name, or a member’s whole address.</EmptyState>
      )}
      {tenants.length > 0 && (
        <DataTable
          caption="Organizations"
          columns={[...COLUMNS, actions(setChosen)]}
          rows={tenants}
          rowId={(tenant) => tenant.id}
        />
      )}
      {found.hasNextPage && (
        <div className="mt-4 flex justify-center">
          <Button variant="secondary" busy={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>
            Earlier organizations
          </Button>
        </div>
      )}
      <SuspensionDialog tenant={chosen} onClose={() => setChosen(null)} />
    </>
  )
}

const COLUMNS = [
  column.accessor('name', {
    header: 'Name',
    cell: ({ row: { original: tenant } }) => (
      <>
        <span className="font-medium break-words">{tenant.name}</span>
        <code className="mt-0.5 block font-mono text-xs break-all text-ink-3">{tenant.id}</code>
      </>
    ),
  }),
  column.accessor('standing', {
    header: 'Standing',
    cell: ({ getValue }) => <Badge tone={TONES[getValue()]}>{WORDS[getValue()]}</Badge>,
  }),
  column.accessor('members', {
    header: 'Members',
    meta: { align: 'right', wide: true },
    cell: ({ getValue }) => <span className="nums">{count(getValue())}</span>,
  }),
  column.accessor('groups', {
    header: 'Groups',
    meta: { align: 'right', wide: true },
    cell: ({ getValue }) => <span className="nums">{count(getValue())}</span>,
  }),
  column.accessor('rate_per_s', {
    header: 'Reserved',
    meta: { align: 'right', wide: true },
    cell: ({ getValue }) => <span className="nums">{rate(getValue())}</span>,
  }),
  column.accessor('hourly_micros', {
    header: 'An hour',
    meta: { align: 'right', wide: true },
    cell: ({ getValue }) => <span className="nums">{money(getValue(), CURRENCY)}</span>,
  }),
  column.accessor('created_at', {
    header: 'Since',
    meta: { align: 'right', wide: true },
    cell: ({ getValue }) => (
      <span className="text-ink-2">
        <Ago at={getValue()} />
      </span>
    ),
  }),
]

function actions(onChoose: (tenant: Tenant) => void) {
  return column.display({
    id: 'actions',
    header: () => <span className="sr-only">Actions</span>,
    meta: { align: 'right' },
    cell: ({ row: { original: tenant } }) => {
      if (tenant.standing === 'closed') return null
      const label = tenant.standing === 'suspended' ? 'End suspension' : 'Suspend'
      return (
        <Button
          variant="quiet"
          size="small"
          className="-mr-3"
          aria-label={`${label} of ${tenant.name}`}
          onClick={() => onChoose(tenant)}
        >
          {label}
        </Button>
      )
    },
  })
}
