import type { Commitment, Commitments } from '@/api'

const PERCENT = 100

/** The cost of a commitment in a month, in micro-units, whether it is used or not. */
export function owed(monthly: number, discountPercent: number): number {
  return Math.round((monthly * (PERCENT - discountPercent)) / PERCENT)
}

/** The change of a month's cost with it, if the reservations stay as they are. Below 0: it saves. */
export function difference(monthly: number, discountPercent: number, reserved: number): number {
  return owed(monthly, discountPercent) + Math.max(0, reserved - monthly) - reserved
}

/** Reservations that no commitment covers in the month that begins next. */
export function uncovered({ items, reserved_monthly_micros }: Commitments, now: Date): number {
  const committed = items
    .filter((each) => holds(each, nextMonth(now)))
    .reduce((sum, each) => sum + each.monthly_micros, 0)
  return Math.max(0, reserved_monthly_micros - committed)
}

export function holds({ start, end }: Commitment, at: Date): boolean {
  return Date.parse(start) <= at.getTime() && at.getTime() < Date.parse(end)
}

/** The begin of the month after this one, in UTC: then a new commitment begins. */
export function nextMonth(now: Date): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1))
}

export type State = 'to come' | 'running' | 'ended'

export function stateOf(commitment: Commitment, now: Date): State {
  if (now.getTime() < Date.parse(commitment.start)) return 'to come'
  return holds(commitment, now) ? 'running' : 'ended'
}

/** "a year", "3 years", "18 months". */
export function termText(months: number): string {
  if (months === 12) return 'a year'
  return months % 12 === 0 ? `${months / 12} years` : `${months} months`
}
