const DAY = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeZone: 'UTC' })
const MOMENT = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' })
const MINUTE_UTC = new Intl.DateTimeFormat('en', {
  dateStyle: 'medium',
  timeStyle: 'short',
  hourCycle: 'h23',
  timeZone: 'UTC',
})
const MINUTE = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short', hourCycle: 'h23' })
const MONTH = new Intl.DateTimeFormat('en', { month: 'long', year: 'numeric', timeZone: 'UTC' })
const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

/** Months and invoices are in UTC, as in the service's bills. Times of day are in the reader's zone. */
export function day(iso: string): string {
  return DAY.format(new Date(iso))
}
export function moment(iso: string): string {
  return MOMENT.format(new Date(iso))
}
export function minute(iso: string): string {
  return MINUTE.format(new Date(iso))
}
export function minuteUtc(iso: string): string {
  return `${MINUTE_UTC.format(new Date(iso))} UTC`
}
/** "2026-11" → "November 2026". */
export function monthName(month: string): string {
  return MONTH.format(new Date(`${month}-01T00:00:00Z`))
}
export function monthOf(now: Date): string {
  return now.toISOString().slice(0, 7)
}
/** The month and the months before it, newest first. */
export function monthsBack(now: Date, months: number): string[] {
  return Array.from({ length: months }, (_, back) =>
    monthOf(new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1))),
  )
}

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
]

export function ago(iso: string, nowMs: number): string {
  const seconds = Math.round((new Date(iso).getTime() - nowMs) / 1_000)
  if (Math.abs(seconds) < 5) return 'just now'
  const [unit, size] = STEPS.find(([, each]) => Math.abs(seconds) >= each) ?? ['second', 1]
  return RELATIVE.format(Math.trunc(seconds / size), unit)
}

/** 95 → "1 h 35 min". */
export function minutesLong(minutes: number): string {
  const hours = Math.trunc(minutes / 60)
  const rest = Math.round(minutes % 60)
  if (hours === 0) return `${rest} min`
  return rest === 0 ? `${hours} h` : `${hours} h ${rest} min`
}
