import type { Invoice, InvoiceLine } from '@/api'
import { uuid, type MockGroup } from './records'

/** The invoices of the two months before this one. */
export function seedInvoices(nowMs: number, groups: MockGroup[]): Invoice[] {
  const now = new Date(nowMs)
  return [1, 2].map((back) => {
    const start = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1)
    const end = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back + 1, 1)
    const number = `INV-${new Date(end).getUTCFullYear()}-${String(3 - back).padStart(6, '0')}`
    return invoiceOf(uuid(40 + back), number, start, end, end, groups, 'issued')
  })
}

/** An invoice of the period's groups up to `untilMs`: the reservation by the second, then usage, then credits. */
export function invoiceOf(
  id: string | null,
  number: string | null,
  startMs: number,
  endMs: number,
  untilMs: number,
  groups: MockGroup[],
  status: 'open' | 'issued',
): Invoice {
  const lines = groups.flatMap((mock) => linesOf(mock, startMs, untilMs, status))
  const subtotal_micros = lines.reduce((sum, line) => sum + line.amount_micros, 0)
  const tax_micros = Math.floor(subtotal_micros * 0.19 + 0.5)
  const issued_at = status === 'issued' ? iso(endMs + 6 * 3_600_000) : null
  return {
    id,
    kind: 'invoice',
    number,
    status,
    period_start: iso(startMs),
    period_end: iso(endMs),
    issued_at,
    currency: 'USD',
    subtotal_micros,
    tax_micros,
    total_micros: subtotal_micros + tax_micros,
    corrects_invoice_id: null,
    payment: null,
    lines,
    taxes: [{ label: 'VAT 19 %', rate_ppm: 190_000, base_micros: subtotal_micros, amount_micros: tax_micros }],
  }
}

function linesOf(
  { group, traffic, story }: MockGroup,
  startMs: number,
  untilMs: number,
  status: 'open' | 'issued',
): InvoiceLine[] {
  const seconds = Math.floor((untilMs - Math.max(startMs, Date.parse(group.created_at))) / 1_000)
  if (seconds <= 0) return []
  const line = (
    kind: InvoiceLine['kind'],
    description: string,
    quantity: number,
    unit: string,
    price_quantity: number,
    unit_price_micros: number,
  ): InvoiceLine => ({
    group_id: group.id,
    group_name: group.name,
    kind,
    description,
    quantity,
    unit,
    price_quantity,
    unit_price_micros,
    amount_micros: Math.floor((quantity * unit_price_micros) / price_quantity + 0.5),
    correction_id: null,
    project_id: null,
  })
  const reservation = line('reservation', 'Reservation', seconds, 'second', 3_600, group.price.hourly_micros)
  const lines = [reservation]
  if (traffic)
    lines.push(
      line('appends', 'Appended entries', Math.floor((seconds * traffic.mean_per_s) / 40), 'entry', 1_000_000, 150_000),
    )
  if (traffic)
    lines.push(
      line('reads', 'Read entries', Math.floor((seconds * traffic.mean_per_s) / 160), 'entry', 1_000_000, 20_000),
      line('egress', 'Read bytes', Math.floor(seconds * traffic.mean_per_s), 'byte', 1_000_000_000, 50_000),
    )
  if (story === 1 && traffic)
    lines.push({
      ...line('appends', 'Correction: a server counted a minute twice', -48_000, 'entry', 1_000_000, 150_000),
      correction_id: uuid(90),
    })
  if (story === 1 && status === 'issued')
    lines.push(line('sla_credit', 'SLA credit: throughput', 10, 'percent', 100, -reservation.amount_micros))
  return lines
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}
