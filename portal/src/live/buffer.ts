import type { LiveSample } from '@/api'

/** The last minutes of samples, one a second, oldest first. Pure. */
export const WINDOW_S = 120
const SAMPLES_MAX = WINDOW_S + 10

/**
 * Adds a sample. It replaces one of the same second, and is dropped if it is older than the last: around a failover two
 * servers may both report for a moment.
 */
export function withSample(samples: LiveSample[], sample: LiveSample): LiveSample[] {
  const last = samples.at(-1)
  if (last && second(sample) < second(last)) return samples
  const kept = last && second(sample) === second(last) ? samples.slice(0, -1) : samples
  return [...kept, sample].slice(-SAMPLES_MAX)
}

export interface LiveSeries {
  times: number[]
  committed: (number | null)[]
  offered: (number | null)[]
  throttled: (number | null)[]
  p50: (number | null)[]
  p99: (number | null)[]
}

/** Aligned columns for the charts. Seconds without a sample become a gap, not a straight line. */
export function seriesOf(samples: LiveSample[]): LiveSeries {
  const series: LiveSeries = { times: [], committed: [], offered: [], throttled: [], p50: [], p99: [] }
  let previous: LiveSample | undefined
  for (const sample of samples) {
    if (previous && second(sample) - second(previous) > GAP_S) push(series, second(previous) + 1, null)
    push(series, second(sample), sample)
    previous = sample
  }
  return series
}

/** A late sample leaves no gap. */
const GAP_S = 3

function second(sample: LiveSample): number {
  return Math.floor(sample.at_ms / 1_000)
}

function push(series: LiveSeries, time: number, sample: LiveSample | null): void {
  // Without appends there is no latency. A server then reports null or 0.
  const idle = sample === null || sample.append_per_s === 0
  series.times.push(time)
  series.committed.push(sample?.append_per_s ?? null)
  series.offered.push(sample?.offered_per_s ?? null)
  series.throttled.push(sample?.throttled_per_s ?? null)
  series.p50.push(idle ? null : sample.p50_us)
  series.p99.push(idle ? null : sample.p99_us)
}
