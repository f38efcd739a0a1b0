import type { Budget, BudgetAlert, InvoiceLine, NewBudget, Spend, SpendDay } from '@/api'
import { invoiceOf } from './invoices'
import { uuid, type MockDb } from './records'

const DAY_MS = 86_400_000

interface Month {
  startMs: number
  endMs: number
  nowMs: number
}

export function monthAt(nowMs: number): Month {
  const now = new Date(nowMs)
  return {
    startMs: Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1),
    endMs: Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1),
    nowMs,
  }
}

/** The lines of the open invoice until a time of this month. */
function linesUntil(db: MockDb, { startMs, endMs }: Month, untilMs: number): InvoiceLine[] {
  return invoiceOf(null, null, startMs, endMs, untilMs, db.groups, 'open').lines
}

/** Usage is even in the mock service, so that the forecast is what the invoice will be. */
export function spendOf(db: MockDb, nowMs: number): Spend {
  const month = monthAt(nowMs)
  const spent = linesUntil(db, month, nowMs)
  const expected = linesUntil(db, month, month.endMs)
  const total = sum(expected)
  const usage_left = total - sum(spent) - byKind(expected).reservation + byKind(spent).reservation
  const before = db.invoices[0]
  const projectOf = (group_id: string | null) => db.groups.find(({ group }) => group.id === group_id)?.group.project_id
  const of = (lines: InvoiceLine[], project_id: string) =>
    sum(lines.filter((each) => projectOf(each.group_id) === project_id))
  return {
    month: iso(month.startMs).slice(0, 7),
    period_start: iso(month.startMs),
    period_end: iso(month.endMs),
    as_of: iso(nowMs),
    currency: 'USD',
    spent_micros: sum(spent),
    by_kind: byKind(spent),
    forecast: {
      total_micros: total,
      low_micros: total - Math.floor(usage_left * 0.3),
      high_micros: total + Math.floor(usage_left * 0.4),
      by_kind: byKind(expected),
      basis: {
        observed_from: iso(Math.max(month.startMs, Math.floor(nowMs / DAY_MS - 7) * DAY_MS)),
        observed_s: 7 * 86_400,
        whole_days: 7,
        left_s: Math.floor((month.endMs - nowMs) / 1_000),
      },
    },
    previous: before
      ? {
          month: before.period_start.slice(0, 7),
          total_micros: before.total_micros,
          by_kind: byKind(before.lines),
          status: 'issued',
          invoice_id: before.id,
        }
      : null,
    projects: db.projects
      .filter(({ id }) => of(expected, id) > 0)
      .map(({ id, name }) => ({
        project_id: id,
        project_name: name,
        spent_micros: of(spent, id),
        forecast_micros: of(expected, id),
        previous_micros: of(before?.lines ?? [], id),
      })),
    groups: [],
    other_groups: { groups: 0, spent_micros: 0, forecast_micros: 0, previous_micros: 0 },
  }
}

export function daysOf(db: MockDb, nowMs: number): SpendDay[] {
  const month = monthAt(nowMs)
  const days: SpendDay[] = []
  for (let startMs = month.startMs; startMs <= nowMs; startMs += DAY_MS) {
    const had = byKind(linesUntil(db, month, startMs))
    const has = byKind(linesUntil(db, month, Math.min(nowMs, startMs + DAY_MS)))
    // Weekends are quieter, so that days differ.
    const busy = [0, 6].includes(new Date(startMs).getUTCDay()) ? 0.4 : 1
    const by_kind = {
      reservation: has.reservation - had.reservation,
      appends: Math.floor((has.appends - had.appends) * busy),
      reads: Math.floor((has.reads - had.reads) * busy),
      egress: Math.floor((has.egress - had.egress) * busy),
      storage: 0,
      guarantee: 0,
      commitment: 0,
    }
    const total_micros = by_kind.reservation + by_kind.appends + by_kind.reads + by_kind.egress
    days.push({ day: iso(startMs).slice(0, 10), total_micros, by_kind })
  }
  return days
}

/** The organization's budget is nearly used up, and the forecast is above it. */
export function seedBudgets(db: MockDb, nowMs: number): Budget[] {
  const expected = spendOf(db, nowMs).forecast.total_micros
  const cents = (micros: number) => Math.ceil(micros / 10_000_000) * 10_000_000
  return [
    budgetOf(db, { monthly_micros: cents(expected * 0.85) }, uuid(60), nowMs - 20 * DAY_MS),
    budgetOf(db, { project_id: uuid(1), monthly_micros: cents(expected * 1.2) }, uuid(61), nowMs - 20 * DAY_MS),
  ]
}

export function budgetOf(db: MockDb, asked: NewBudget, id: string, atMs: number): Budget {
  const project_id = asked.project_id ?? null
  return {
    id,
    project_id,
    project_name: db.projects.find((each) => each.id === project_id)?.name ?? null,
    monthly_micros: asked.monthly_micros,
    currency: 'USD',
    thresholds_percent: asked.thresholds_percent ?? [50, 80, 100],
    forecast_thresholds_percent: asked.forecast_thresholds_percent ?? [100],
    action: asked.action ?? 'alert',
    acted: null,
    created_at: iso(atMs),
    updated_at: iso(atMs),
    alerts: [],
  }
}

/** The budget with an alert for each threshold that is reached now. */
export function withAlerts(db: MockDb, budget: Budget, nowMs: number): Budget {
  const spend = spendOf(db, nowMs)
  const own = budget.project_id === null ? null : spend.projects.find((each) => each.project_id === budget.project_id)
  const spent = budget.project_id === null ? spend.spent_micros : (own?.spent_micros ?? 0)
  const forecast = budget.project_id === null ? spend.forecast.total_micros : (own?.forecast_micros ?? 0)
  const alert = (kind: BudgetAlert['kind'], percent: number, amount: number): BudgetAlert => ({
    id: `${budget.id.slice(0, -8)}${kind === 'actual' ? 'a' : 'f'}${String(percent).padStart(7, '0')}`,
    month: spend.month,
    kind,
    threshold_percent: percent,
    amount_micros: amount,
    monthly_micros: budget.monthly_micros,
    at: iso(nowMs - percent * 60_000),
  })
  const reached = (amount: number) => (percent: number) => amount * 100 >= budget.monthly_micros * percent
  return {
    ...budget,
    acted: actedOf(budget, spent, forecast, nowMs),
    alerts: [
      ...budget.thresholds_percent.filter(reached(spent)).map((percent) => alert('actual', percent, spent)),
      ...budget.forecast_thresholds_percent
        .filter(reached(forecast))
        .map((percent) => alert('forecast', percent, forecast)),
    ],
  }
}

/** In the mock service, the forecast stands for what is certain. */
function actedOf(budget: Budget, spent: number, forecast: number, nowMs: number): Budget['acted'] {
  if (budget.action === 'alert') return null
  const amount = budget.action === 'suspend' ? forecast : spent
  return amount < budget.monthly_micros
    ? null
    : { action: budget.action, amount_micros: amount, at: iso(nowMs - 60_000) }
}

function byKind(lines: InvoiceLine[]): Spend['by_kind'] {
  const found = { reservation: 0, appends: 0, reads: 0, egress: 0, storage: 0, guarantee: 0, commitment: 0 }
  for (const { kind, amount_micros } of lines) if (kind !== 'sla_credit') found[kind] += amount_micros
  return found
}

function sum(lines: InvoiceLine[]): number {
  return lines.reduce((total, line) => total + line.amount_micros, 0)
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}
