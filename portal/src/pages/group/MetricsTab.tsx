import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import { metricsQuery, type MetricsMinute } from '@/api'
import { TimeChart } from '@/charts/TimeChart'
import { compact, count, latency, rate } from '@/format/quantity'
import { LoadFailed } from '@/ui/Notice'
import { EmptyState, Loading, Section, Skeleton } from '@/ui/Surface'
import { scrollable } from '@/ui/scrollable'
import { usePageTitle } from '@/ui/title'
import { buttonClass } from '@/ui/Button'
import { columnsOf } from './metricsColumns'
import { useGroup } from './GroupPage'

const route = getRouteApi('/app/projects/$projectId/groups/$groupId/metrics')
const RANGES = [
  { minutes: 60, label: '1 hour' },
  { minutes: 360, label: '6 hours' },
  { minutes: 1_440, label: '24 hours' },
]
const TABLE_ROWS = 60

export function MetricsTab() {
  const group = useGroup()
  usePageTitle('Metrics', group.name)
  const { minutes = 60 } = route.useSearch()
  const metrics = useQuery(metricsQuery(group.id, minutes))
  return (
    <div className="space-y-5">
      <Ranges minutes={minutes} />
      {metrics.isPending && (
        <Loading label="Loading metrics">
          <div className="space-y-5">
            <Skeleton className="h-80 w-full rounded-2xl" />
            <Skeleton className="h-80 w-full rounded-2xl" />
          </div>
        </Loading>
      )}
      {metrics.error && !metrics.data && (
        <LoadFailed what="the metrics" error={metrics.error} retry={() => void metrics.refetch()} />
      )}
      {metrics.data?.minutes.length === 0 && <NothingYet />}
      {metrics.data && metrics.data.minutes.length > 0 && <Charts minutes={metrics.data.minutes} range_min={minutes} />}
    </div>
  )
}

function Ranges({ minutes }: { minutes: number }) {
  return (
    <nav aria-label="Range" className="inline-flex rounded-lg border border-line bg-surface p-0.5">
      {RANGES.map((range) => (
        <Link
          key={range.minutes}
          to="."
          search={{ minutes: range.minutes }}
          replace
          aria-current={range.minutes === minutes ? 'true' : undefined}
          className="rounded-md px-3 py-1.5 text-[13px] text-ink-2 hover:text-ink aria-[current]:bg-hover aria-[current]:font-medium aria-[current]:text-ink"
        >
          {range.label}
        </Link>
      ))}
    </nav>
  )
}

function NothingYet() {
  const { projectId, groupId } = route.useParams()
  return (
    <EmptyState
      title="No minutes to show yet"
      action={
        <Link
          to="/projects/$projectId/groups/$groupId/connect"
          params={{ projectId, groupId }}
          className={buttonClass('secondary')}
        >
          Connect a client
        </Link>
      }
    >
      Each minute is counted on the servers and appears here when it is over.
    </EmptyState>
  )
}

function Charts({ minutes, range_min }: { minutes: MetricsMinute[]; range_min: number }) {
  const columns = useMemo(() => columnsOf(minutes), [minutes])
  const throughput = useMemo(
    () => [
      { label: 'Committed', token: 'chart-committed', values: columns.committed, filled: true },
      { label: 'Offered', token: 'chart-offered', values: columns.offered },
      { label: 'Throttled', token: 'chart-throttled', values: columns.throttled, hidesZero: true },
      { label: 'Reserved', token: 'chart-reserved', values: columns.reserved, dashed: true },
    ],
    [columns],
  )
  const delays = useMemo(
    () => [
      { label: 'p99', token: 'chart-offered', values: columns.p99 },
      { label: 'p50', token: 'chart-committed', values: columns.p50, filled: true },
    ],
    [columns],
  )
  const last = minutes.at(-1)
  const to = (columns.times.at(-1) ?? 0) + 60
  const range = useMemo(() => ({ from: to - range_min * 60, to }), [to, range_min])
  if (!last) return null
  return (
    <>
      <Section title="Throughput" description="Mean of each minute, in requests per second.">
        <TimeChart
          description={`Throughput of ${minutes.length} minutes; in the last one ${rate(last.committed_per_s)} committed of ${rate(last.offered_per_s)} offered.`}
          times={columns.times}
          lines={throughput}
          format={compact}
          formatValue={count}
          height={260}
          range_s={range}
        />
      </Section>
      <Section title="Commit latency" description="From the head’s receipt of a request to its acknowledgement.">
        <TimeChart
          description={`Commit latency of ${minutes.length} minutes; in the last one p50 ${latency(last.p50_us)}, p99 ${latency(last.p99_us)}.`}
          times={columns.times}
          lines={delays}
          format={latency}
          height={260}
          range_s={range}
        />
      </Section>
      <MinutesTable minutes={minutes} />
    </>
  )
}

function MinutesTable({ minutes }: { minutes: MetricsMinute[] }) {
  const rows = minutes.slice(-TABLE_ROWS).toReversed()
  return (
    <details className="rounded-2xl border border-line bg-surface">
      <summary className="rounded-2xl px-5 py-4 text-sm font-medium hover:bg-hover sm:px-6">
        The last {rows.length} minutes as a table
      </summary>
      <div {...scrollable('Metrics per minute')} className="relative overflow-x-auto border-t border-line">
        <table className="w-full text-right text-[13px]">
          <caption className="sr-only">Metrics per minute, newest first</caption>
          <thead className="text-ink-3">
            <tr className="border-b border-line">
              {['Minute', 'Reserved/s', 'Offered/s', 'Committed/s', 'Throttled/s', 'p50', 'p99'].map((head) => (
                <th
                  key={head}
                  scope="col"
                  className="px-4 py-2 font-normal whitespace-nowrap first:text-left sm:first:pl-6"
                >
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody className="divide-y divide-line">
            {rows.map((minute) => (
              <Row key={minute.at} minute={minute} />
            ))}
          </tbody>
        </table>
      </div>
    </details>
  )
}

function Row({ minute }: { minute: MetricsMinute }) {
  const cells = [
    count(minute.reserved_per_s),
    count(minute.offered_per_s),
    count(minute.committed_per_s),
    count(minute.throttled_per_s),
    latency(minute.p50_us),
    latency(minute.p99_us),
  ]
  const time = new Date(minute.at).toLocaleTimeString('en', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
  return (
    <tr>
      <th scope="row" className="px-4 py-1.5 text-left font-normal text-ink-2 sm:pl-6">
        {time}
      </th>
      {cells.map((cell, index) => (
        // The cells of a row have fixed places.
        // oxlint-disable-next-line react/no-array-index-key
        <td key={index} className="px-4 py-1.5 whitespace-nowrap">
          {cell}
        </td>
      ))}
    </tr>
  )
}
