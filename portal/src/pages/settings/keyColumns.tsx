import { createColumnHelper } from '@tanstack/react-table'
import type { AnyKey } from '@/api'
import { Button } from '@/ui/Button'
import { Badge } from '@/ui/StatusBadge'
import { Ago, useNow } from '@/ui/Time'
import { inWords } from './scopes'

const column = createColumnHelper<AnyKey>()

export const COLUMNS = [
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

export function actions(onRotate: (key: AnyKey) => void, onRevoke: (key: AnyKey) => void) {
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
