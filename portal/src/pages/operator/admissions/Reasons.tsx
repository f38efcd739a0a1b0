import { useQuery } from '@tanstack/react-query'
import { admissionCountsQuery } from '@/api'
import { count } from '@/format/quantity'
import { Segmented } from '@/ui/Choice'
import { LoadFailed } from '@/ui/Notice'
import { Section, Skeleton } from '@/ui/Surface'
import { reasonText } from './admissions'

export type Hours = 24 | 168 | 720
const PERIODS = [
  { value: '24', label: 'A day' },
  { value: '168', label: 'A week' },
  { value: '720', label: '30 days' },
] as const

/** How often the fleet said yes, and no for which reason. */
export function Reasons({ hours, onHours }: { hours: Hours; onHours: (hours: Hours) => void }) {
  const found = useQuery(admissionCountsQuery(hours))
  const rows = found.data?.items ?? []
  const most = Math.max(1, ...rows.map((row) => row.count))
  return (
    <Section
      title="By reason"
      aside={
        <div className="w-72 max-w-full">
          <Segmented
            legend="Of the last"
            value={`${hours}` as const}
            options={PERIODS}
            onChange={(value) => onHours(Number(value) as Hours)}
          />
        </div>
      }
    >
      {found.isPending && <Skeleton className="h-24 w-full" />}
      {found.error && !found.data && (
        <LoadFailed what="the counts" error={found.error} retry={() => void found.refetch()} />
      )}
      {found.data && rows.length === 0 && <p className="text-sm text-ink-3">Nobody has asked for anything.</p>}
      <ul className="space-y-3">
        {rows.map((row) => {
          const isRefusal = row.outcome === 'refused'
          const label = isRefusal ? reasonText(row) : 'Admitted'
          return (
            <li key={label} className="grid grid-cols-[minmax(0,14rem)_1fr_auto] items-center gap-4 text-sm">
              <span className="truncate">{label}</span>
              <span aria-hidden className="h-2 overflow-hidden rounded-full bg-line">
                <span
                  className={`block h-full rounded-full ${isRefusal ? 'bg-warn' : 'bg-accent'}`}
                  style={{ width: `${(row.count / most) * 100}%` }}
                />
              </span>
              <span className="nums min-w-10 text-right font-medium">{count(row.count)}</span>
            </li>
          )
        })}
      </ul>
    </Section>
  )
}
