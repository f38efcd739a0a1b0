import type { InvoiceLine } from '@/api'
import { money } from '@/format/money'
import { count } from '@/format/quantity'

/** A line's quantity in words. Amounts are never computed here. */
export function quantityText(line: InvoiceLine): string {
  const { quantity, unit } = line
  // A correction takes off use.
  if (quantity < 0) return `−${quantityText({ ...line, quantity: -quantity })}`
  if (unit === 'second') return duration(quantity)
  if (unit === 'entry') return `${count(quantity)} ${quantity === 1 ? 'entry' : 'entries'}`
  if (unit === 'megabyte_second') return `${small(quantity / MEGABYTE_SECONDS_PER_GB_MONTH)} GB-months`
  if (unit === 'byte') return `${small(quantity / 1e9)} GB`
  if (unit === 'percent') return `${quantity} %`
  return `${count(quantity)} ${unit}`
}

const PRICE_UNITS: Record<string, Record<number, string>> = {
  second: { 1: 'second', 3_600: 'hour' },
  entry: { 1: 'entry', 1_000_000: 'million entries' },
  byte: { 1_000_000_000: 'GB' },
  megabyte_second: { 2_628_000_000: 'GB-month' },
}

/** "$0.15 per million entries". Credits and discounts have no price. */
export function priceText({ unit, price_quantity, unit_price_micros, kind }: InvoiceLine, currency: string): string {
  if (kind === 'sla_credit' || kind === 'commitment') return ''
  const per = PRICE_UNITS[unit]?.[price_quantity] ?? (price_quantity === 1 ? unit : `${count(price_quantity)} ${unit}`)
  return `${money(unit_price_micros, currency)} per ${per}`
}

const SECONDS_PER_HOUR = 3_600
const MEGABYTE_SECONDS_PER_GB_MONTH = 1_000 * 730 * SECONDS_PER_HOUR

function duration(seconds: number): string {
  const short = (value: number) => value.toLocaleString('en', { maximumFractionDigits: 2 })
  if (seconds < 60) return `${count(seconds)} s`
  return seconds < SECONDS_PER_HOUR ? `${short(seconds / 60)} min` : `${short(seconds / SECONDS_PER_HOUR)} h`
}

/** A quantity below the last decimal is shown as "less than" instead of zero, because the amount beside it is exact. */
function small(value: number): string {
  return value > 0 && value < 0.0001 ? '< 0.0001' : value.toLocaleString('en', { maximumFractionDigits: 4 })
}

export interface GroupLines {
  /** null: the organization's own lines. */
  group_id: string | null
  group_name: string
  lines: InvoiceLine[]
  total_micros: number
}

/** The lines by group, in the order in which groups first appear. */
export function byGroup(lines: InvoiceLine[]): GroupLines[] {
  const groups = new Map<string | null, GroupLines>()
  for (const line of lines) {
    const known = groups.get(line.group_id) ?? {
      group_id: line.group_id,
      group_name: line.group_name,
      lines: [],
      total_micros: 0,
    }
    known.lines.push(line)
    known.total_micros += line.amount_micros
    groups.set(line.group_id, known)
  }
  return [...groups.values()]
}
