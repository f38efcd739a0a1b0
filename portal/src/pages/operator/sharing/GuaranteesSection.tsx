import { useQuery } from '@tanstack/react-query'
import { createColumnHelper } from '@tanstack/react-table'
import { guaranteesQuery, type Guaranteed } from '@/api'
import { count } from '@/format/quantity'
import { POLICIES } from '@/pages/guarantee/guarantee'
import { DataTable } from '@/ui/DataTable'
import { Titled } from '@/ui/Surface'

const column = createColumnHelper<Guaranteed>()

/** The guarantees of projects and their use. Nothing while no project has one. */
export function GuaranteesSection() {
  const found = useQuery(guaranteesQuery)
  if (!found.data?.length) return null
  return (
    <div className="mb-8">
      <Titled
        title="Guarantees of projects"
        description="Tokens a second that the groups of a project share by their owner’s policy."
      >
        <DataTable caption="Guarantees" columns={COLUMNS} rows={found.data} rowId={(each) => each.project_id} />
      </Titled>
    </div>
  )
}

const COLUMNS = [
  column.accessor('project_id', {
    header: 'Project',
    cell: ({ getValue }) => <code className="font-mono text-[13px] break-all">{getValue()}</code>,
  }),
  column.accessor('policy', {
    header: 'Policy',
    meta: { wide: true },
    cell: ({ getValue }) => POLICIES.find(({ name }) => name === (getValue().name ?? 'drf'))?.label,
  }),
  column.accessor('groups', { header: 'Groups', meta: { align: 'right', wide: true }, cell: tokens }),
  column.accessor('shared_tokens_per_s', { header: 'Shared', meta: { align: 'right' }, cell: tokens }),
  column.accessor('granted_tokens_per_s', { header: 'In use', meta: { align: 'right' }, cell: tokens }),
  column.accessor('wanted_tokens_per_s', { header: 'Wanted', meta: { align: 'right', wide: true }, cell: tokens }),
]

function tokens({ getValue }: { getValue: () => number }) {
  return <span className="nums">{count(getValue())}</span>
}
