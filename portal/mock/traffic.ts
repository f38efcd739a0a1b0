import type { LiveSample, MetricsMinute } from '@/api'

/** Synthetic load of a group. Pure: the same second gives the same sample in every call. */
export interface Traffic {
  /** First append, ms since 1970. */
  since_ms: number
  /** Mean offered rate, requests a second. */
  mean_per_s: number
  reserved_per_s: number
  seed: number
}

export function sampleAt(traffic: Traffic, atMs: number, epoch: number): LiveSample {
  const second = Math.floor(atMs / 1_000)
  const offered = offeredAt(traffic, second)
  const ceiling = traffic.reserved_per_s * 1.15
  const committed = Math.min(offered, ceiling)
  const load = committed / traffic.reserved_per_s
  const p50 = 420 + 260 * load + 60 * noise(traffic.seed + 7, second)
  return {
    at_ms: second * 1_000,
    append_per_s: Math.round(committed),
    offered_per_s: Math.round(offered),
    throttled_per_s: Math.round(offered - committed),
    p50_us: Math.round(p50),
    p99_us: Math.round(p50 * (2.3 + 0.9 * noise(traffic.seed + 13, second) + (load > 1 ? 1.6 : 0))),
    committed_entries: committedAt(traffic, atMs),
    epoch,
  }
}

/** The service's sample of a group without any entry. */
export function silentSample(atMs: number, epoch: number): LiveSample {
  return {
    at_ms: atMs,
    append_per_s: 0,
    offered_per_s: 0,
    throttled_per_s: 0,
    p50_us: null,
    p99_us: null,
    committed_entries: 0,
    epoch,
  }
}

export function committedAt(traffic: Traffic, atMs: number): number {
  return Math.max(0, Math.floor(((atMs - traffic.since_ms) / 1_000) * traffic.mean_per_s))
}

export function minutesOf(traffic: Traffic, untilMs: number, minutes: number): MetricsMinute[] {
  const last = Math.floor(untilMs / 60_000) - 1
  return Array.from({ length: minutes }, (_, index) => last - minutes + 1 + index)
    .filter((minute) => (minute + 1) * 60_000 > traffic.since_ms)
    .map((minute) => minuteOf(traffic, minute))
}

function minuteOf(traffic: Traffic, minute: number): MetricsMinute {
  const samples = [5, 20, 35, 50].map((second) => sampleAt(traffic, (minute * 60 + second) * 1_000, 1))
  const mean = (pick: (sample: LiveSample) => number) =>
    samples.reduce((sum, each) => sum + pick(each), 0) / samples.length
  return {
    at: new Date(minute * 60_000).toISOString(),
    reserved_per_s: traffic.reserved_per_s,
    offered_per_s: mean((each) => each.offered_per_s),
    committed_per_s: mean((each) => each.append_per_s),
    throttled_per_s: mean((each) => each.throttled_per_s),
    p50_us: Math.round(mean((each) => each.p50_us ?? 0)),
    p99_us: Math.round(Math.max(...samples.map((each) => each.p99_us ?? 0))),
  }
}

/** A slow wave, a faster one, noise, and occasional bursts above the reservation. */
function offeredAt(traffic: Traffic, second: number): number {
  const swell = 0.22 * Math.sin((second / 2_700) * 2 * Math.PI + traffic.seed)
  const ripple = 0.07 * Math.sin((second / 47) * 2 * Math.PI)
  const burst = noise(traffic.seed + 99, Math.floor(second / 240)) > 0.94 ? 0.65 : 0
  return Math.max(0, traffic.mean_per_s * (1 + swell + ripple + burst + 0.08 * (noise(traffic.seed, second) - 0.5)))
}

/** Hash of two integers to [0, 1). */
function noise(seed: number, n: number): number {
  let h = Math.imul(n ^ (seed * 0x9e3779b1), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return ((h ^ (h >>> 16)) >>> 0) / 2 ** 32
}
