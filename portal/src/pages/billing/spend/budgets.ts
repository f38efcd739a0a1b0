import type { Budget, BudgetAlert } from '@/api'
import { moneyShort } from '@/format/money'

export const MONTHLY_MICROS_MAX = 10 ** 15
export const THRESHOLDS_MAX = 10
export const PERCENT_MAX = 1_000

/** What a budget does once its amount is reached. */
export const ACTIONS: Record<Budget['action'], { label: string; meaning: string }> = {
  alert: { label: 'Alert only', meaning: 'Groups go on, and cost on.' },
  throttle: {
    label: 'Throttle to the reservations',
    meaning: 'Groups keep what they reserved, without burst capacity, until the month is over.',
  },
  suspend: {
    label: 'Suspend the groups',
    meaning:
      'Groups take neither appends nor reads until the month is over. Logs are kept. It begins early enough that reservations and kept data stay below the amount.',
  },
}

/** "1,250.50" → micro-units, in integers; null for anything else. */
export function microsOf(text: string): number | null {
  const match = /^(\d{1,3}(?:,\d{3})+|\d{1,10})(?:\.(\d{1,6}))?$/.exec(text.trim())
  if (!match) return null
  const [, whole = '', decimals = ''] = match
  const micros = Number(whole.replaceAll(',', '') + decimals.padEnd(6, '0'))
  return micros > 0 && micros <= MONTHLY_MICROS_MAX ? micros : null
}

/** Micro-units as text for a field: no symbol, and no decimals that say nothing. */
export function amountText(micros: number): string {
  const decimals = String(micros % 1_000_000).padStart(6, '0')
  const whole = String(Math.trunc(micros / 1_000_000))
  const shown = decimals.replace(/0{1,4}$/, '')
  return /^0*$/.test(shown) ? whole : `${whole}.${shown}`
}

/** "50, 80, 100" → percentages, ascending; null if one of them is none. Empty text is no threshold. */
export function percentsOf(text: string): number[] | null {
  const parts = text.split(/[\s,;%]+/).filter(Boolean)
  const found = parts.map((part) => (/^\d{1,4}$/.test(part) ? Number(part) : 0))
  const valid = found.every((percent) => percent >= 1 && percent <= PERCENT_MAX)
  if (!valid || new Set(found).size !== found.length || found.length > THRESHOLDS_MAX) return null
  return found.toSorted((one, other) => one - other)
}

export type Standing = 'within' | 'foreseen' | 'over'

/** Whether a budget is used up, or will be at the month's end. */
export function standing(monthly: number, spent: number, forecast: number): Standing {
  if (spent >= monthly) return 'over'
  return forecast > monthly ? 'foreseen' : 'within'
}

export interface Reached {
  budget: Budget
  alert: BudgetAlert
}

/** This month's alerts of all budgets, newest first. */
export function alertsOf(budgets: Budget[]): Reached[] {
  return budgets
    .flatMap((budget) => budget.alerts.map((alert) => ({ budget, alert })))
    .toSorted((one, other) => other.alert.at.localeCompare(one.alert.at) || weight(other) - weight(one))
}

/** The alert that says most: one of what was spent before a forecast, then the highest threshold. */
export function gravest(reached: Reached[]): Reached | undefined {
  return reached.toSorted((one, other) => weight(other) - weight(one))[0]
}

function weight({ alert }: Reached): number {
  return (alert.kind === 'actual' ? 10 * PERCENT_MAX : 0) + alert.threshold_percent
}

export function ownerOf(budget: Budget, organization: string): string {
  return budget.project_name ?? organization
}

export function sentence({ budget, alert }: Reached, organization: string): string {
  const { threshold_percent: percent, amount_micros: amount, monthly_micros: monthly } = alert
  const of = `${percent} % of the budget of ${moneyShort(monthly, budget.currency)}`
  const owner = ownerOf(budget, organization)
  return alert.kind === 'actual'
    ? `${owner} reached ${of}, at ${moneyShort(amount, budget.currency)}.`
    : `The forecast for ${owner} reached ${of}, at ${moneyShort(amount, budget.currency)}.`
}

/** Budgets that throttle or suspend groups now, the strictest first. */
export function actingOf(budgets: Budget[]): Budget[] {
  return budgets.filter(({ acted }) => acted !== null).toSorted((one, other) => strictness(other) - strictness(one))
}

function strictness({ acted }: Budget): number {
  return acted?.action === 'suspend' ? 1 : 0
}

export function actingSentence(budget: Budget, organization: string): string {
  const owner = ownerOf(budget, organization)
  const cap = `its cap of ${moneyShort(budget.monthly_micros, budget.currency)}`
  return budget.acted?.action === 'suspend'
    ? `${owner} reached ${cap}: its groups are suspended.`
    : `${owner} reached ${cap}: its groups have their reservations alone.`
}
