import type { Payment, PaymentEntry, Reminder } from '@/api'
import { moneyShort } from '@/format/money'
import { day } from '@/format/time'

type Tone = 'good' | 'warn' | 'plain'

const STATES: Record<Payment['state'], [string, Tone]> = {
  open: ['To pay', 'plain'],
  overdue: ['Overdue', 'warn'],
  paid: ['Paid', 'good'],
  written_off: ['Written off', 'plain'],
}
const STAGES: Record<Reminder['stage'], string> = {
  reminder: 'Reminder',
  second_reminder: 'Second reminder',
  final_notice: 'Final notice',
}

export function state(payment: Payment): { text: string; tone: Tone } {
  const [text, tone] = STATES[payment.state]
  return { text, tone }
}

/** "$12.34 by Dec 9, 2026"; empty if nothing is due. */
export function dueText({ state: now, due_micros, due_at }: Payment, currency: string): string {
  if (due_micros === 0) return ''
  const amount = moneyShort(due_micros, currency)
  if (due_at === null) return amount
  return `${amount} ${now === 'overdue' ? 'since' : 'by'} ${day(due_at)}`
}

export interface Happening {
  id: string
  at: string
  text: string
  detail: string
  /** Signed: money that was returned is negative. Null for reminders. */
  micros: number | null
}

/** Payments and reminders of an invoice, newest first. */
export function history(payment: Payment, entries: PaymentEntry[], currency: string): Happening[] {
  const reminders = payment.reminders.map(({ id, at, stage, due_micros, due_at }) => ({
    id,
    at,
    text: STAGES[stage],
    detail: `${moneyShort(due_micros, currency)} were due on ${day(due_at)}`,
    micros: null,
  }))
  return [...reminders, ...entries.map(happening)].toSorted((one, other) => other.at.localeCompare(one.at))
}

function happening({ id, at, kind, provider, reference, amount_micros }: PaymentEntry): Happening {
  const how = provider === 'stripe' ? 'Card payment' : 'Payment'
  const text = { payment: how, write_off: 'Written off', reversal: 'Reversal' }[kind]
  return { id, at, text, detail: reference, micros: kind === 'reversal' ? -amount_micros : amount_micros }
}
