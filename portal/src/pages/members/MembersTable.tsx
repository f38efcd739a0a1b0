import { createColumnHelper } from '@tanstack/react-table'
import type { Member } from '@/api'
import { word } from '@/format/words'
import { useMay } from '@/session'
import { Button } from '@/ui/Button'
import { DataTable } from '@/ui/DataTable'
import { Ago } from '@/ui/Time'

const column = createColumnHelper<Member>()

interface Actions {
  onChange: (member: Member) => void
  onRemove: (member: Member) => void
}

export function MembersTable({ members, ...actions }: Actions & { members: Member[] }) {
  const [mayAdminister, mayTouchOwners] = [useMay('administer'), useMay('own')]
  const owners = members.filter((member) => member.role === 'owner').length
  const isLast = (member: Member) => member.role === 'owner' && owners === 1
  const mayChange = (member: Member) => mayAdminister && (member.role !== 'owner' || mayTouchOwners) && !isLast(member)
  const mayRemove = (member: Member) => mayChange(member) || (member.is_you && !isLast(member))
  return (
    <DataTable
      caption="Members of the organization"
      columns={[...COLUMNS, actionsColumn(actions, mayChange, mayRemove)]}
      rows={members}
      rowId={(member) => member.user_id}
    />
  )
}

const COLUMNS = [
  column.accessor('email', {
    header: 'Person',
    cell: ({ row }) => (
      <span className="font-medium break-words">
        {row.original.email}
        {row.original.is_you && <span className="ml-2 font-normal text-ink-3">you</span>}
        <span className="mt-0.5 block text-xs font-normal text-ink-3 md:hidden">{word(row.original.role)}</span>
      </span>
    ),
  }),
  column.accessor('role', {
    header: 'Role',
    meta: { wide: true },
    cell: ({ getValue }) => <span className="text-ink-2">{word(getValue())}</span>,
  }),
  column.accessor('joined_at', {
    header: 'Member since',
    meta: { wide: true },
    cell: ({ getValue }) => (
      <span className="text-ink-2">
        <Ago at={getValue()} />
      </span>
    ),
  }),
]

type Test = (member: Member) => boolean

function actionsColumn({ onChange, onRemove }: Actions, mayChange: Test, mayRemove: Test) {
  return column.display({
    id: 'actions',
    header: () => <span className="sr-only">Actions</span>,
    meta: { align: 'right' },
    cell: ({ row: { original: member } }) => (
      <span className="-mr-3 inline-flex flex-col items-end sm:flex-row">
        {mayChange(member) && (
          <Button
            variant="quiet"
            size="small"
            aria-label={`Change the role of ${member.email}`}
            onClick={() => onChange(member)}
          >
            Change
          </Button>
        )}
        {mayRemove(member) && (
          <Button
            variant="quiet"
            size="small"
            aria-label={member.is_you ? 'Leave the organization' : `Remove ${member.email}`}
            onClick={() => onRemove(member)}
          >
            {member.is_you ? 'Leave' : 'Remove'}
          </Button>
        )}
      </span>
    ),
  })
}
