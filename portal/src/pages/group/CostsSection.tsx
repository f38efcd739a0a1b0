import { useQuery } from '@tanstack/react-query'
import { costsQuery, type Group, type OperationCost } from '@/api'
import { bytes } from '@/format/quantity'
import { scrollable } from '@/ui/scrollable'
import { Section } from '@/ui/Surface'

const NAMES: Record<OperationCost['operation'], string> = {
  append: 'Append',
  read: 'Read',
  catch_up: 'Read from the disk',
}

/** The group's virtual cost functions, for those who send other sizes than they declared. */
export function CostsSection({ group }: { group: Group }) {
  const costs = useQuery(costsQuery(group.id))
  if (!costs.data) return null
  const operations = costs.data.operations
  const sizes = [...new Set(operations.map((each) => each.size_bytes))]
  const rows = [...new Map(operations.map((each) => [rowOf(each), each])).values()]
  return (
    <Section
      title="What operations cost"
      description={`In appends, or reads, of ${bytes(group.sla.request_size_bytes)} in full batches: the unit of the reservation.`}
    >
      <div className="relative overflow-x-auto" {...scrollable('Costs of operations')}>
        <table className="nums w-full text-sm">
          <thead>
            <tr className="border-b border-line text-left text-ink-3">
              <th scope="col" className="py-2 pr-4 font-normal">
                One entry
              </th>
              {sizes.map((size) => (
                <th key={size} scope="col" className="py-2 pl-4 text-right font-normal whitespace-nowrap">
                  {bytes(size)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody className="divide-y divide-line">
            {rows.map((row) => (
              <tr key={rowOf(row)}>
                <th scope="row" className="py-2 pr-4 text-left font-normal whitespace-nowrap">
                  {NAMES[row.operation]}
                  <span className="text-ink-3">{row.entries === 1 ? ', alone' : `, in a batch of ${row.entries}`}</span>
                </th>
                {sizes.map((size) => (
                  <td key={size} className="py-2 pl-4 text-right">
                    {worth(operations.find((each) => each.size_bytes === size && rowOf(each) === rowOf(row)))}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  )
}

function rowOf(cost: OperationCost): string {
  return `${cost.operation} ${cost.entries}`
}

/** Two digits are enough to choose a size by. */
function worth(cost: OperationCost | undefined): string {
  if (!cost) return '–'
  return cost.counts_as >= 10 ? Math.round(cost.counts_as).toLocaleString('en') : cost.counts_as.toFixed(1)
}
