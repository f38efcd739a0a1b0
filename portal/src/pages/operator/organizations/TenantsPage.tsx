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
import { Listing } from '@/ui/Listing'
import { useRested } from '@/ui/rested'
import { Badge } from '@/ui/StatusBadge'
import { EmptyState, PageHeader } from '@/ui/Surface'
import { Ago } from '@/ui/Time'
import { usePageTitle } from '@/ui/title'
import { QuotaRequests } from './QuotaRequests'
import { TONES, WORDS } from './standing'
import { SuspensionDialog } from './SuspensionDialog'
import { OrganizationLink } from './OrganizationLink'

const route = getRouteApi('/operator/organizations')
const column = createColumnHelper<Tenant>()
const CURRENCY = 'USD'

export function TenantsPage() {
  usePageTitle('Organizations')
  const { q = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const found = useInfiniteQuery(tenantsQuery(useRested(q.trim())))
  const [chosen, setChosen] = useState<Tenant | null>(null)
  return (
    <>
      <PageHeader title="Organizations" description="Who has reserved what, newest first." />
      <QuotaRequests />
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
      <Listing
        what="the organizations"
        query={found}
        more="Earlier organizations"
        empty={<EmptyState title="None found">Try a part of the name, or a member’s whole address.</EmptyState>}
      >
        {(tenants) => (
          <DataTable
            caption="Organizations"
            columns={[...COLUMNS, actions(setChosen)]}
            rows={tenants}
            rowId={(tenant) => tenant.id}
          />
        )}
      </Listing>
      <SuspensionDialog tenant={chosen} onClose={() => setChosen(null)} />
    </>
  )
}

const COLUMNS = [
  column.accessor('name', {
    header: 'Name',
    cell: ({ row: { original: tenant } }) => (
      <>
        <OrganizationLink id={tenant.id} name={tenant.name} />
        <code className="mt-0.5 hidden font-mono text-xs break-all text-ink-3 md:block">{tenant.id}</code>
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
