import type { Clause } from '@/api'
import { count } from '@/format/quantity'
import { minutesLong } from '@/format/time'

export const CLAUSE_NAMES: Record<Clause['clause'], string> = {
  availability: 'Availability',
  throughput: 'Throughput',
  latency: 'Latency',
  durability: 'Durability',
  order: 'Order',
}

/** Clauses that telemetry measures each minute. The others may never be missed. */
export const MEASURED: readonly Clause['clause'][] = ['availability', 'throughput', 'latency']

/** Colours of the clauses in charts of incidents, as tokens. */
export const CLAUSE_TOKENS: Record<Clause['clause'], string> = {
  availability: 'danger',
  throughput: 'warn',
  latency: 'info',
  durability: 'danger',
  order: 'danger',
}

/** How much of a month has passed at a time, from 0 to 1. Months are those of UTC. */
export function shareOfMonth(month: string, atMs: number): number {
  const [year = 1970, number = 1] = month.split('-').map(Number)
  const [from, to] = [Date.UTC(year, number - 1, 1), Date.UTC(year, number, 1)]
  return Math.min(1, Math.max(0, (atMs - from) / (to - from)))
}

/**
 * The used share of the month's error budget: 1 is the whole budget, more is a missed clause. Null while nothing was
 * counted. A budget of nothing is used up by any miss.
 */
export function budgetUsed({ attained, error_budget: { allowed, used } }: Pick<Clause, 'attained' | 'error_budget'>) {
  if (attained === null) return null
  if (allowed > 0) return used / allowed
  return used > 0 ? Number.POSITIVE_INFINITY : 0
}

/** An amount of an error budget for people: "4.2 min", "38 s", "1 h 12 min". */
export function budgetAmount(unit: Clause['error_budget']['unit'], amount: number): string {
  if (unit === 'minutes') return minutesLong(amount)
  const seconds = amount / 1_000
  if (seconds < 100) return `${Math.round(seconds * 10) / 10} s`
  return seconds < 6_000 ? `${Math.round(seconds / 6) / 10} min` : minutesLong(seconds / 60)
}

/** A burn rate for people; below a hundred its decimals matter. Null: nothing was counted. */
export function burnRate(rate: number | null): string {
  if (rate === null) return '–'
  return rate >= 100 ? count(rate) : String(Math.round(rate * 100) / 100)
}
