import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { createColumnHelper } from '@tanstack/react-table'
import { KeyRound, Plus } from 'lucide-react'
import { useState } from 'react'
import { apiKeysQuery, type ApiKey } from '@/api'
import { useMay } from '@/session'
import { Button } from '@/ui/Button'
import { DataTable } from '@/ui/DataTable'
import { LoadFailed } from '@/ui/Notice'
import { Badge } from '@/ui/StatusBadge'
import { EmptyState, Loading, PageHeader, Skeleton } from '@/ui/Surface'
import { Ago, useNow } from '@/ui/Time'
import { usePageTitle } from '@/ui/title'
import { NewKeyDialog } from './NewKeyDialog'
import { RevokeKeyDialog } from './RevokeKeyDialog'
import { RotateKeyDialog } from './RotateKeyDialog'
import { inWords } from './scopes'

const route = getRouteApi('/app/projects/$projectId/keys')
const column = createColumnHelper<ApiKey>()

export function KeysPage() {
  usePageTitle('API keys')
  const { projectId } = route.useParams()
  const found = useQuery(apiKeysQuery(projectId))
  const [creating, setCreating] = useState(false)
  const [revoking, setRevoking] = useState<ApiKey | null>(null)
  const [rotating, setRotating] = useState<ApiKey | null>(null)
  const mayChange = useMay('administer')
  const make = mayChange && (
    <Button icon={<Plus aria-hidden className="size-4" />} onClick={() => setCreating(true)}>
      New API key
    </Button>
  )
  return (
    <>
      <PageHeader
        title="API keys"
        description="A key lets a program append to and read the groups of this project. We keep only a hash of it."
        actions={found.data?.length ? make : undefined}
      />
      {found.isPending && (
        <Loading label="Loading API keys">
          <Skeleton className="h-48 w-full rounded-2xl" />
        </Loading>
      )}
      {found.error && !found.data && (
        <LoadFailed what="the API keys" error={found.error} retry={() => void found.refetch()} />
      )}
      {found.data?.length === 0 && (
        <EmptyState title="No API keys yet" picture={<KeyRound aria-hidden className="size-8" />} action={make}>
          {mayChange
            ? 'Make one for each program, so that each can be revoked alone.'
            : 'Owners and admins of the organization make them.'}
        </EmptyState>
      )}
      {found.data && found.data.length > 0 && (
        <DataTable
          caption="API keys of this project"
          columns={mayChange ? [...COLUMNS, actions(setRotating, setRevoking)] : COLUMNS}
          rows={found.data}
          rowId={(key) => key.id}
        />
      )}
      <NewKeyDialog projectId={projectId} open={creating} onOpenChange={setCreating} />
      <RotateKeyDialog apiKey={rotating} onClose={() => setRotating(null)} />
      <RevokeKeyDialog apiKey={revoking} onClose={() => setRevoking(null)} />
    </>
  )
}

const COLUMNS = [
  column.accessor('name', {
    header: 'Name',
    cell: ({ row }) => (
      <>
        <span className="font-medium">{row.original.name}</span>
        <span className="mt-0.5 block font-mono text-xs text-ink-3 md:hidden">{row.original.prefix}…</span>
      </>
    ),
  }),
  column.accessor('prefix', {
    header: 'Begins with',
    meta: { wide: true },
    cell: ({ row }) => (
      <>
        <code className="font-mono text-[13px] text-ink-2">{row.original.prefix}…</code>
        {row.original.former_secret_until && (
          <span className="mt-0.5 block text-xs text-ink-3">
            former secret ends <Ago at={row.original.former_secret_until} />
          </span>
        )}
      </>
    ),
  }),
  column.accessor('scopes', {
    header: 'May',
    meta: { wide: true },
    cell: ({ getValue }) =>
      inWords(getValue()).map((line) => (
        <span key={line} className="block text-ink-2">
          {line}
        </span>
      )),
  }),
  column.accessor('last_used_at', {
    header: 'Last used',
    cell: ({ getValue }) => <span className="text-ink-2">{orElse(getValue(), 'Never')}</span>,
  }),
  column.accessor('expires_at', {
    header: 'Expires',
    meta: { wide: true },
    cell: ({ getValue }) => <Expiry at={getValue()} />,
  }),
]

function actions(onRotate: (key: ApiKey) => void, onRevoke: (key: ApiKey) => void) {
  return column.display({
    id: 'actions',
    header: () => <span className="sr-only">Actions</span>,
    meta: { align: 'right' },
    cell: ({ row: { original: key } }) => (
      <span className="-mr-3 inline-flex flex-col items-end sm:flex-row">
        <Button variant="quiet" size="small" aria-label={`Rotate ${key.name}`} onClick={() => onRotate(key)}>
          Rotate
        </Button>
        <Button variant="quiet" size="small" aria-label={`Revoke ${key.name}`} onClick={() => onRevoke(key)}>
          Revoke
        </Button>
      </span>
    ),
  })
}

function Expiry({ at }: { at: string | null }) {
  const now = useNow()
  if (at !== null && Date.parse(at) <= now) return <Badge tone="danger">Expired</Badge>
  return <span className="text-ink-2">{orElse(at, 'Never')}</span>
}

function orElse(at: string | null, otherwise: string) {
  return at === null ? otherwise : <Ago at={at} />
}
