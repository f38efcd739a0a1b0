import { useMemo } from 'react'
import { TimeChart } from '@/charts/TimeChart'
import { compact, count, latency, rate } from '@/format/quantity'
import { moneyShort } from '@/format/money'
import { seriesOf, WINDOW_S } from '@/live/buffer'
import { useLive } from '@/live/LiveProvider'
import { Card, Figure, Section } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { useGroup } from '../GroupPage'
import { EventsSection } from './EventsSection'
import { LiveBadge } from './LiveBadge'
import { PlacementSection } from './PlacementSection'

export function OverviewTab() {
  const group = useGroup()
  usePageTitle(group.name)
  const { samples } = useLive()
  const last = samples.at(-1)
  return (
    <div className="space-y-5">
      <Card>
        <dl className="grid grid-cols-2 gap-x-6 gap-y-6 sm:grid-cols-4">
          <Figure label="Committed now" note={`of ${rate(group.sla.rate_per_s)} reserved`}>
            <span data-testid="committed-now">{last ? rate(last.append_per_s) : '–'}</span>
          </Figure>
          <Figure
            label="Commit latency, p99"
            note={last?.append_per_s ? `p50 ${latency(last.p50_us)}` : 'no appends now'}
          >
            {last?.append_per_s ? latency(last.p99_us) : '–'}
          </Figure>
          <Figure label="Entries committed" note="since the group was created">
            <span data-testid="committed-entries">{last ? count(last.committed_entries) : '–'}</span>
          </Figure>
          <Figure label="Reservation per month" note="usage comes on top">
            {moneyShort(group.price.monthly_micros, group.price.currency)}
          </Figure>
        </dl>
      </Card>
      <LiveCharts reserved_per_s={group.sla.rate_per_s} />
      <div className="grid grid-cols-1 items-start gap-5 lg:grid-cols-2">
        <PlacementSection groupId={group.id} flowing={(last?.append_per_s ?? 0) > 0} />
        <EventsSection groupId={group.id} />
      </div>
    </div>
  )
}

function LiveCharts({ reserved_per_s }: { reserved_per_s: number }) {
  const { samples, state } = useLive()
  const series = useMemo(() => seriesOf(samples), [samples])
  const last = samples.at(-1)
  const throughput = useMemo(
    () => [
      { label: 'Committed', token: 'chart-committed', values: series.committed, filled: true },
      { label: 'Offered', token: 'chart-offered', values: series.offered },
      { label: 'Throttled', token: 'chart-throttled', values: series.throttled, hidesZero: true },
      { label: 'Reserved', token: 'chart-reserved', values: series.times.map(() => reserved_per_s), dashed: true },
    ],
    [series, reserved_per_s],
  )
  const delays = useMemo(
    () => [
      { label: 'p99', token: 'chart-offered', values: series.p99 },
      { label: 'p50', token: 'chart-committed', values: series.p50, filled: true },
    ],
    [series],
  )
  return (
    <div className="grid grid-cols-1 gap-5 lg:grid-cols-2">
      <Section title="Throughput" aside={<LiveBadge state={state} />}>
        <TimeChart
          description={
            last
              ? `Throughput now: ${rate(last.append_per_s)} committed of ${rate(last.offered_per_s)} offered; ${rate(reserved_per_s)} reserved.`
              : 'Throughput: waiting for the first sample.'
          }
          times={series.times}
          lines={throughput}
          format={compact}
          formatValue={count}
          ceiling={reserved_per_s * 1.15}
          span_s={WINDOW_S}
        />
      </Section>
      <Section title="Commit latency" aside={<LiveBadge state={state} />}>
        <TimeChart
          description={
            last?.append_per_s
              ? `Commit latency now: p50 ${latency(last.p50_us)}, p99 ${latency(last.p99_us)}.`
              : 'Commit latency: no appends now.'
          }
          times={series.times}
          lines={delays}
          format={latency}
          ceiling={500}
          span_s={WINDOW_S}
        />
      </Section>
    </div>
  )
}
