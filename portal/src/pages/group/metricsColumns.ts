import type { MetricsMinute } from '@/api'

type Column = (number | null)[]
export interface Columns {
  times: number[]
  reserved: Column
  offered: Column
  committed: Column
  throttled: Column
  p50: Column
  p99: Column
}

const MINUTE_S = 60

/**
 * Aligned columns for the charts, times in seconds. The service leaves out minutes without telemetry. They become gaps,
 * because a line across them would show values that were not measured.
 */
export function columnsOf(minutes: MetricsMinute[]): Columns {
  const columns: Columns = { times: [], reserved: [], offered: [], committed: [], throttled: [], p50: [], p99: [] }
  let previous: number | null = null
  for (const minute of minutes) {
    const time = Date.parse(minute.at) / 1_000
    if (previous !== null && time - previous > MINUTE_S) push(columns, previous + MINUTE_S, null)
    push(columns, time, minute)
    previous = time
  }
  return columns
}

function push(columns: Columns, time: number, minute: MetricsMinute | null): void {
  columns.times.push(time)
  columns.reserved.push(minute?.reserved_per_s ?? null)
  columns.offered.push(minute?.offered_per_s ?? null)
  columns.committed.push(minute?.committed_per_s ?? null)
  columns.throttled.push(minute?.throttled_per_s ?? null)
  columns.p50.push(minute?.p50_us ?? null)
  columns.p99.push(minute?.p99_us ?? null)
}
