import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { createColumnHelper } from '@tanstack/react-table'
import { ChevronLeft } from 'lucide-react'
import { useState } from 'react'
import { hostedQuery, type HostedReplica } from '@/api'
import { rate } from '@/format/quantity'
import { word } from '@/format/words'
import { Button } from '@/ui/Button'
import { DataTable } from '@/ui/DataTable'
import { Listing } from '@/ui/Listing'
import { Notice } from '@/ui/Notice'
import { EmptyState, PageHeader } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { OrganizationLink } from '../organizations/OrganizationLink'
import { MoveDialog } from './MoveDialog'

const route = getRouteApi('/operator/servers/$serverId')
const column = createColumnHelper<HostedReplica>()

/** The replicas on one server, with whose they are. */
export function HostedPage() {
  const { serverId } = route.useParams()
  usePageTitle(`Server ${serverId}`)
  const found = useInfiniteQuery(hostedQuery(Number(serverId)))
  const [moving, setMoving] = useState<HostedReplica | null>(null)
  const [begun, setBegun] = useState<string | null>(null)
  return (
    <>
      <Link
        to="/operator"
        className="mb-4 -ml-1 inline-flex items-center gap-1 rounded text-[13px] text-ink-2 hover:text-ink"
      >
        <ChevronLeft aria-hidden className="size-4" />
        Fleet
      </Link>
      <PageHeader title={`Replicas on server ${serverId}`} description="As last observed, newest groups first." />
      {begun && (
        <div className="mb-6">
          <Notice tone="good" title={`The replica of ${begun} moves`}>
            <Link to="/operator/moves" className="underline underline-offset-4">
              Moves
            </Link>{' '}
            shows it until it has left.
          </Notice>
        </div>
      )}
      <Listing
        what="the replicas"
        query={found}
        more="Older groups"
        empty={<EmptyState title="It has no replicas">A drained or new server has none.</EmptyState>}
      >
        {(rows) => (
          <DataTable
            caption={`Replicas on server ${serverId}`}
            columns={[...COLUMNS, actions(setMoving)]}
            rows={rows}
            rowId={(row) => row.group_id}
          />
        )}
      </Listing>
      {moving && (
        <MoveDialog
          serverId={Number(serverId)}
          replica={moving}
          onClose={() => setMoving(null)}
          onMoving={() => {
            setBegun(moving.name)
            setMoving(null)
          }}
        />
      )}
    </>
  )
}

function actions(onMove: (replica: HostedReplica) => void) {
  return column.display({
    id: 'actions',
    header: () => <span className="sr-only">Actions</span>,
    meta: { align: 'right' },
    cell: ({ row: { original } }) =>
      original.is_learner ? null : (
        <Button variant="quiet" size="small" aria-label={`Move ${original.name}`} onClick={() => onMove(original)}>
          Move
        </Button>
      ),
  })
}

const COLUMNS = [
  column.accessor('name', {
    header: 'Group',
    cell: ({ row: { original } }) => (
      <>
        <span className="font-medium break-words">{original.name}</span>
        <code className="mt-0.5 hidden font-mono text-xs break-all text-ink-3 md:block">{original.group_id}</code>
      </>
    ),
  }),
  column.accessor('organization_name', {
    header: 'Organization',
    cell: ({ row: { original } }) => (
      <OrganizationLink id={original.organization_id} name={original.organization_name} />
    ),
  }),
  column.accessor('role', {
    header: 'Role',
    cell: ({ row: { original } }) => (original.is_learner ? 'Catching up' : word(original.role)),
  }),
  column.accessor('status', { header: 'Status', meta: { wide: true }, cell: ({ getValue }) => word(getValue()) }),
  column.accessor('durability', {
    header: 'Durability',
    meta: { wide: true },
    cell: ({ getValue }) => word(getValue()),
  }),
  column.accessor('rate_per_s', {
    header: 'Reserved',
    meta: { align: 'right', wide: true },
    cell: ({ getValue }) => <span className="nums">{rate(getValue())}</span>,
  }),
]
