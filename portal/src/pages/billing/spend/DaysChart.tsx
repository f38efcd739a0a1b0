import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { spendDaysQuery, type SpendDays } from '@/api'
import { TimeChart } from '@/charts/TimeChart'
import { moneyShort } from '@/format/money'
import { LoadFailed } from '@/ui/Notice'
import { Loading, Section, Skeleton } from '@/ui/Surface'

const MICROS = 1_000_000
const DAY_S = 86_400
const CENT = 0.01

/** The cost of each day of this month. The axis has room for the days to come. */
export function DaysChart({ end }: { end: string }) {
  const days = useQuery(spendDaysQuery)
  if (days.isPending)
    return (
      <Loading label="Loading the days">
        <Skeleton className="h-80 w-full rounded-2xl" />
      </Loading>
    )
  if (!days.data) return <LoadFailed what="the cost of each day" error={days.error} retry={() => void days.refetch()} />
  return <Chart days={days.data} end={end} />
}

function Chart({ days: { days, currency }, end }: { days: SpendDays; end: string }) {
  const times = useMemo(() => days.map(({ day }) => Date.parse(day) / 1_000), [days])
  const lines = useMemo(
    () => [
      {
        label: 'Reservation',
        token: 'chart-committed',
        values: days.map(({ by_kind }) => (by_kind.reservation + by_kind.guarantee) / MICROS),
        bars: true,
      },
      {
        label: 'With usage',
        token: 'chart-offered',
        values: days.map(({ total_micros }) => total_micros / MICROS),
        bars: true,
      },
    ],
    [days],
  )
  const range_s = useMemo(
    () => ({ from: (times[0] ?? 0) - DAY_S / 2, to: Date.parse(end) / 1_000 - DAY_S / 2 }),
    [times, end],
  )
  const format = (value: number) => moneyShort(Math.round(value * MICROS), currency)
  const last = days.at(-1)
  return (
    <Section title="By day" description="Each day in UTC. Today is not over yet.">
      <TimeChart
        description={`Cost of each day of this month. Today, until now: ${moneyShort(last?.total_micros ?? 0, currency)}.`}
        times={times}
        lines={lines}
        format={format}
        ceiling={CENT}
        range_s={range_s}
        days
      />
    </Section>
  )
}
