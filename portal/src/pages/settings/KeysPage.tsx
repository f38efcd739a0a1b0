import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { createColumnHelper } from '@tanstack/react-table'
import { KeyRound, Plus } from 'lucide-react'
import { useState } from 'react'
import { apiKeysQuery, type ApiKey } from '@/api'
import { Button } from '@/ui/Button'
import { DataTable } from '@/ui/DataTable'
import { LoadFailed } from '@/ui/Notice'
import { EmptyState, Loading, PageHeader, Skeleton } from '@/ui/Surface'
import { Ago } from '@/ui/Time'
import { usePageTitle } from '@/ui/title'
import { NewKeyDialog, RevokeKeyDialog } from './KeyDialogs'

const route = getRouteApi('/app/projects/$projectId/keys')
const column = createColumnHelper<ApiKey>()

export function KeysPage() {
  usePageTitle('API keys')
  const { projectId } = route.useParams()
  const found = useQuery(apiKeysQuery(projectId))
  const [creating, setCreating] = useState(false)
  const [revoking, setRevoking] = useState<ApiKey | null>(null)
  const make = (
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
          Make one for each program, so that each can be revoked alone.
        </EmptyState>
      )}
      {found.data && found.data.length > 0 && (
        <DataTable
          caption="API keys of this project"
          columns={columns(setRevoking)}
          rows={found.data}
          rowId={(key) => key.id}
        />
      )}
      <NewKeyDialog projectId={projectId} open={creating} onOpenChange={setCreating} />
      <RevokeKeyDialog apiKey={revoking} onClose={() => setRevoking(null)} />
    </>
  )
}

function columns(onRevoke: (key: ApiKey) => void) {
  return [
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
      cell: ({ getValue }) => <code className="font-mono text-[13px] text-ink-2">{getValue()}…</code>,
    }),
    column.accessor('scopes', {
      header: 'May',
      meta: { wide: true },
      cell: ({ getValue }) => <span className="text-ink-2">{getValue().join(', ')}</span>,
    }),
    column.accessor('last_used_at', {
      header: 'Last used',
      cell: ({ getValue }) => <span className="text-ink-2">{used(getValue())}</span>,
    }),
    column.accessor('created_at', {
      header: 'Created',
      meta: { wide: true },
      cell: ({ getValue }) => (
        <span className="text-ink-2">
          <Ago at={getValue()} />
        </span>
      ),
    }),
    column.display({
      id: 'actions',
      header: () => <span className="sr-only">Actions</span>,
      meta: { align: 'right' },
      cell: ({ row }) => (
        <Button
          variant="quiet"
          size="small"
          className="-mr-3"
          aria-label={`Revoke ${row.original.name}`}
          onClick={() => onRevoke(row.original)}
        >
          Revoke
        </Button>
      ),
    }),
  ]
}

function used(at: string | null) {
  return at === null ? 'Never' : <Ago at={at} />
}
