import type { Invoice, Payment, PaymentEntry } from '@/api'
import { uuid, type MockDb } from './records'

const DAY_MS = 86_400_000
const CENT = 10_000

/** The last month's invoice is overdue, with a reminder. The one before was paid in two parts. */
export function seedPayments([last, before]: Invoice[], nowMs: number): MockDb['payments'] {
  if (!last || !before) return {}
  const due_at = iso(nowMs - 4 * DAY_MS)
  const due_micros = cents(last.total_micros)
  last.payment = stateOf(due_micros, [], due_at, nowMs)
  last.payment.reminders = [{ id: uuid(80), stage: 'reminder', due_micros, due_at, at: iso(nowMs - DAY_MS) }]
  const whole = cents(before.total_micros)
  const half = cents(whole / 2)
  const entries = [
    entryOf(82, whole - half, 'stripe', 'pi_3PqR7sKf2mZ', nowMs - 26 * DAY_MS),
    entryOf(81, half, 'manual', 'Bank transfer 2207', nowMs - 29 * DAY_MS),
  ]
  before.payment = stateOf(whole, entries, iso(Date.parse(before.issued_at ?? '') + 14 * DAY_MS), nowMs)
  return { [before.id ?? '']: entries }
}

/** The customer pays on the provider's page, which the mock service takes for granted. */
export function pay(db: MockDb, invoice: Invoice, nowMs: number): void {
  if (!invoice.payment || invoice.id === null) return
  const entry = entryOf(90, invoice.payment.due_micros, 'stripe', 'pi_3QaB8tLg4nY', nowMs)
  const entries = [entry, ...(db.payments[invoice.id] ?? [])]
  db.payments[invoice.id] = entries
  const { payable_micros, due_at, reminders } = invoice.payment
  invoice.payment = { ...stateOf(payable_micros, entries, due_at, nowMs), reminders }
}

function stateOf(payable_micros: number, entries: PaymentEntry[], due_at: string | null, nowMs: number): Payment {
  const paid_micros = entries.reduce((sum, entry) => sum + entry.amount_micros, 0)
  const due_micros = Math.max(0, payable_micros - paid_micros)
  const late = due_at !== null && Date.parse(due_at) <= nowMs
  return {
    state: due_micros === 0 ? 'paid' : late ? 'overdue' : 'open',
    provider: 'stripe',
    due_at,
    payable_micros,
    paid_micros,
    written_off_micros: 0,
    due_micros,
    overpaid_micros: Math.max(0, paid_micros - payable_micros),
    reminders: [],
  }
}

function entryOf(
  id: number,
  amount_micros: number,
  provider: PaymentEntry['provider'],
  reference: string,
  atMs: number,
): PaymentEntry {
  return { id: uuid(id), kind: 'payment', provider, reference, amount_micros, reverses_id: null, at: iso(atMs) }
}

function cents(micros: number): number {
  return Math.floor(micros / CENT + 0.5) * CENT
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}
