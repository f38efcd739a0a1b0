import type { BadMinute, Incident, SlaReport } from '@/api'
import type { MockGroup } from './records'

export function minutesMissed(incidents: Incident[]): BadMinute[] {
  const missed = new Map<number, BadMinute['missed']>()
  const declared = new Map<number, string>()
  for (const { clause, start, minutes, reason } of incidents) {
    for (let minute = 0; minute < minutes; minute += 1) {
      const at = Math.floor(Date.parse(start) / 60_000 + minute) * 60_000
      missed.set(at, [...(missed.get(at) ?? []), clause])
      if (reason.startsWith(DECLARED)) declared.set(at, reason.slice(DECLARED.length))
    }
  }
  return [...missed]
    .toSorted(([left], [right]) => left - right)
    .map(([at, clauses]) => ({
      at: new Date(at).toISOString(),
      missed: clauses,
      elapsed_ms: 60_000,
      active_ms: declared.has(at) ? 0 : clauses.includes('availability') ? 59_300 : 60_000,
      unreachable_ms: 0,
      measured: true,
      throttled_within_sla_entries: clauses.includes('throughput') ? 412 : 0,
      within_sla_entries: 12_000,
      late_read_entries: 0,
      owed_read_entries: 0,
      p99_us: clauses.includes('latency') ? 14_200 : 3_900,
      target_p99_us: 10_000,
      declared: declared.get(at) ?? null,
      breaches: [],
    }))
}

export function reportOf(mock: MockGroup, month: string, nowMs: number): SlaReport {
  const [year = 1970, number = 1] = month.split('-').map(Number)
  const startMs = Math.max(Date.UTC(year, number - 1, 1), Date.parse(mock.group.created_at))
  const endMs = Math.min(Date.UTC(year, number, 1), nowMs)
  const counted = mock.traffic ? Math.max(0, Math.floor((endMs - startMs) / 60_000)) : 0
  const incidents = counted > 400 ? incidentsOf(mock.story, startMs) : []
  const clause = (name: Incident['clause'], target: number) => {
    const bad = incidents.filter((each) => each.clause === name).reduce((sum, each) => sum + each.minutes, 0)
    const attained = counted === 0 ? null : (counted - bad) / counted
    const met = attained === null || attained >= target
    return {
      clause: name,
      target,
      attained,
      good_minutes: counted - bad,
      bad_minutes: bad,
      met,
      credit_percent: met ? 0 : 10,
      error_budget: budgetOf(name, target, bad, counted, (Date.UTC(year, number, 1) - startMs) / 60_000),
      ...(name === 'latency' ? { target_p99_us: 10_000, p99_us: 4_210 } : {}),
    }
  }
  const clauses = [
    clause('availability', 0.9995),
    clause('throughput', 0.999),
    clause('latency', 0.99),
    clause('durability', 1),
    clause('order', 1),
  ]
  const credit_percent = Math.min(
    100,
    clauses.reduce((sum, each) => sum + each.credit_percent, 0),
  )
  const period = { start: new Date(startMs).toISOString(), end: new Date(endMs).toISOString(), sla: mock.group.sla }
  const periods = startMs < endMs ? [period] : []
  return {
    group_id: mock.group.id,
    month,
    periods,
    minutes_counted: counted,
    clauses,
    credit_percent,
    incidents,
    corrections: incidents.filter((each) => each.reason.startsWith(DECLARED)).map(correctionOf),
  }
}

const DECLARED = 'Declared bad: '

function correctionOf({ start, end, reason }: Incident): SlaReport['corrections'][number] {
  return { start, end, breaches: null, reason: reason.slice(DECLARED.length), created_at: end }
}

/** Bad minutes as if each were bad as a whole, and none of the last hours. */
function budgetOf(name: string, target: number, bad: number, counted: number, whole: number) {
  const unit = name === 'availability' ? 1_400 : 1
  const allowed = Math.floor(whole * (name === 'availability' ? 60_000 : 1) * (1 - target))
  const month = counted === 0 || target === 1 ? null : Math.round((bad * 1_000) / counted / (1 - target)) / 1_000
  const recent = counted === 0 || target === 1 ? null : 0
  return {
    unit: name === 'availability' ? ('ms' as const) : ('minutes' as const),
    allowed,
    used: bad * unit,
    left: allowed - bad * unit,
    burn_rates: { hour: recent, six_hours: recent, month },
  }
}

function incidentsOf(story: number, startMs: number): Incident[] {
  const at = (minutes: number) => new Date(startMs + minutes * 60_000).toISOString()
  const short: Incident = {
    clause: 'availability',
    start: at(190),
    end: at(192),
    minutes: 2,
    reason: 'Appends were paused for 1.4 s while server s5 was replaced.',
  }
  if (story === 0) return [short]
  const declared = (clause: Incident['clause']): Incident => ({
    clause,
    start: at(200),
    end: at(203),
    minutes: 3,
    reason: `${DECLARED}A switch of the region was down.`,
  })
  return [
    declared('availability'),
    {
      clause: 'throughput',
      start: at(240),
      end: at(329),
      minutes: 89,
      reason: 'Requests within the reservation were throttled while a replacement caught up.',
    },
    { clause: 'latency', start: at(240), end: at(268), minutes: 28, reason: 'p99 was above the target of 10 ms.' },
    short,
  ]
}
