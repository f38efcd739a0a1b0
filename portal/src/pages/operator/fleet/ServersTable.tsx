import { Link } from '@tanstack/react-router'
import { createColumnHelper } from '@tanstack/react-table'
import type { Server } from '@/api'
import { count } from '@/format/quantity'
import { Button } from '@/ui/Button'
import { DataTable } from '@/ui/DataTable'
import { Badge } from '@/ui/StatusBadge'
import { ResourceBar } from './ResourceBar'
import { RESOURCES } from './resources'

const column = createColumnHelper<Server>()

export type Deed = 'drain' | 'call off' | 'give up'

export function ServersTable({ servers, onDeed }: { servers: Server[]; onDeed: (server: Server, deed: Deed) => void }) {
  return (
    <DataTable
      caption="Servers of the fleet"
      columns={[...COLUMNS, actions(onDeed)]}
      rows={servers}
      rowId={(server) => String(server.server_id)}
    />
  )
}

function ServerState({ server }: { server: Server }) {
  if (!server.alive) return <Badge tone="danger">Failed</Badge>
  if (server.storage_fault)
    return (
      <Badge tone="danger" title={server.storage_fault}>
        Faulty disk
      </Badge>
    )
  if (server.drain?.state === 'drained') return <Badge tone="plain">Drained</Badge>
  if (server.drain)
    return (
      <Badge tone="busy" title={server.drain.message}>
        Draining
      </Badge>
    )
  if (server.slow)
    return (
      <Badge tone="warn" title={server.slow}>
        Slow
      </Badge>
    )
  if (!server.takes_replicas) return <Badge tone="warn">Takes none</Badge>
  return <Badge tone="good">Alive</Badge>
}

const COLUMNS = [
  column.accessor('name', {
    header: 'Server',
    cell: ({ row: { original: server } }) => (
      <>
        <span className="font-medium">{server.name}</span>
        <span className="mt-0.5 block text-xs text-ink-3">
          {server.region}
          {server.failure_domain && `, ${server.failure_domain}`} · {server.version}
        </span>
      </>
    ),
  }),
  column.display({
    id: 'state',
    header: 'State',
    cell: ({ row: { original: server } }) => (
      <>
        <ServerState server={server} />
        {server.drain?.state === 'draining' && (
          <span className="mt-1 block max-w-48 text-xs text-ink-3">{server.drain.message}</span>
        )}
      </>
    ),
  }),
  column.accessor('replicas', {
    header: 'Replicas',
    meta: { align: 'right', wide: true },
    cell: ({ getValue, row: { original: server } }) => (
      <Link
        to="/operator/servers/$serverId"
        params={{ serverId: String(server.server_id) }}
        aria-label={`${count(getValue())} replicas on ${server.name}`}
        className="nums underline decoration-line-strong underline-offset-4 hover:decoration-current"
      >
        {count(getValue())}
      </Link>
    ),
  }),
  ...RESOURCES.map((resource) =>
    column.display({
      id: resource.name,
      header: resource.label,
      meta: { wide: true },
      cell: ({ row }) => <ResourceBar resource={resource} use={row.original.resources} />,
    }),
  ),
]

function actions(onDeed: (server: Server, deed: Deed) => void) {
  return column.display({
    id: 'actions',
    header: () => <span className="sr-only">Actions</span>,
    meta: { align: 'right' },
    cell: ({ row: { original: server } }) => {
      const deed: Deed = !server.alive ? 'give up' : server.draining ? 'call off' : 'drain'
      const label = { drain: 'Drain', 'call off': 'Call off', 'give up': 'Give up' }[deed]
      return (
        <Button
          variant="quiet"
          size="small"
          className="-mr-3"
          aria-label={`${label} ${server.name}`}
          onClick={() => onDeed(server, deed)}
        >
          {label}
        </Button>
      )
    },
  })
}
