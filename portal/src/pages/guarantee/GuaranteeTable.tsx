import { Link } from '@tanstack/react-router'
import { createColumnHelper } from '@tanstack/react-table'
import type { GuaranteedGroup, ProjectGuarantee } from '@/api'
import { rate } from '@/format/quantity'
import { DataTable } from '@/ui/DataTable'
import { Meter } from '@/ui/Meter'
import { Badge } from '@/ui/StatusBadge'
import { Card } from '@/ui/Surface'
import { isBounded } from './guarantee'

const column = createColumnHelper<GuaranteedGroup>()

/** The groups of the project: what each has of the guarantee, what it wants, and what it could have at most. */
export function GuaranteeTable({ guarantee, projectId }: { guarantee: ProjectGuarantee; projectId: string }) {
  if (guarantee.groups.length === 0) {
    return (
      <Card className="p-6 text-sm text-ink-2">
        The project has no groups yet. The first one may use all of the guarantee.
      </Card>
    )
  }
  return (
    <DataTable
      caption="Groups and their shares of the guarantee, in appends a second"
      columns={columns(projectId)}
      rows={guarantee.groups}
      rowId={(group) => group.group_id}
    />
  )
}

function columns(projectId: string) {
  return [
    column.accessor('name', {
      header: 'Group',
      cell: ({ row }) => (
        <>
          <Link
            to="/projects/$projectId/groups/$groupId"
            params={{ projectId, groupId: row.original.group_id }}
            className="font-medium hover:underline"
          >
            {row.original.name}
          </Link>
          <span className="nums mt-0.5 block text-[13px] text-ink-3">
            {row.original.tokens_per_append} tokens an append
          </span>
        </>
      ),
    }),
    column.accessor('own_appends_per_s', {
      header: 'Own rate',
      meta: { align: 'right', wide: true },
      cell: ({ getValue }) => <span className="nums text-ink-2">{rate(getValue())}</span>,
    }),
    column.accessor('share_per_s', {
      header: 'Share now',
      meta: { align: 'right' },
      cell: ({ row }) => <Share group={row.original} />,
    }),
    column.accessor('wanted_per_s', {
      header: 'Wants beside its own',
      meta: { align: 'right' },
      cell: ({ row }) => <Wanted group={row.original} />,
    }),
    column.accessor('most_appends_per_s', {
      header: 'With all of it',
      meta: { align: 'right', wide: true },
      cell: ({ getValue }) => <span className="nums text-ink-2">{rate(getValue())}</span>,
    }),
  ]
}

function Share({ group }: { group: GuaranteedGroup }) {
  const all = group.most_appends_per_s - group.own_appends_per_s
  const part = group.share_per_s === null || all <= 0 ? 0 : group.share_per_s / all
  return (
    <span className="nums inline-flex flex-col items-end gap-1">
      {group.share_per_s === null ? <span className="text-ink-3">–</span> : rate(group.share_per_s)}
      <Meter part={part} />
    </span>
  )
}

function Wanted({ group }: { group: GuaranteedGroup }) {
  if (group.wanted_per_s === null) return <span className="text-ink-3">not known</span>
  return (
    <span className="nums inline-flex flex-col items-end gap-1">
      {rate(group.wanted_per_s)}
      {isBounded(group) && <Badge tone="warn">wants more</Badge>}
    </span>
  )
}
