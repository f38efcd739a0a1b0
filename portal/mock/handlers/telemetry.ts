import { http, HttpResponse } from 'msw'
import type { BadMinute, Incident, SlaReport } from '@/api'
import { database } from '../db'
import { invoiceOf } from '../invoices'
import type { MockGroup } from '../records'
import { groupById, notFound, page, refuseStranger } from '../reply'
import { minutesOf, sampleAt, silentSample } from '../traffic'

const SAMPLE_MS = 1_000

const live = http.get('/v1/groups/:id/live', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  if (!groupById(params.id)) return notFound('group')
  const encoder = new TextEncoder()
  let timer: ReturnType<typeof setInterval> | undefined
  const stop = () => clearInterval(timer)
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      const send = () => {
        const mock = groupById(params.id)
        if (mock) controller.enqueue(encoder.encode(`event: sample\ndata: ${JSON.stringify(sampleNow(mock))}\n\n`))
      }
      controller.enqueue(encoder.encode(': hello\n\n'))
      send()
      timer = setInterval(send, SAMPLE_MS)
      request.signal.addEventListener('abort', stop)
    },
    cancel: stop,
  })
  return new HttpResponse(stream, { headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store' } })
})

function sampleNow({ group, traffic }: MockGroup) {
  const now = Date.now()
  return traffic && traffic.since_ms <= now ? sampleAt(traffic, now, group.epoch) : silentSample(now, group.epoch)
}

const metrics = http.get('/v1/groups/:id/metrics', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const mock = groupById(params.id)
  if (!mock) return notFound('group')
  const minutes = Number(new URL(request.url).searchParams.get('minutes') ?? 60)
  return HttpResponse.json({
    group_id: mock.group.id,
    minutes: mock.traffic ? minutesOf(mock.traffic, Date.now(), minutes) : [],
  })
})

const sla = http.get('/v1/groups/:id/sla', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const mock = groupById(params.id)
  if (!mock) return notFound('group')
  const month = new URL(request.url).searchParams.get('month') ?? new Date().toISOString().slice(0, 7)
  return HttpResponse.json(reportOf(mock, month, Date.now()))
})

const badMinutes = http.get('/v1/groups/:id/sla/bad-minutes', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const mock = groupById(params.id)
  if (!mock) return notFound('group')
  const month = new URL(request.url).searchParams.get('month') ?? new Date().toISOString().slice(0, 7)
  return page(minutesMissed(reportOf(mock, month, Date.now()).incidents), request)
})

function minutesMissed(incidents: Incident[]): BadMinute[] {
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
      measured: true,
      throttled_within_sla_entries: clauses.includes('throughput') ? 412 : 0,
      p99_us: clauses.includes('latency') ? 14_200 : 3_900,
      declared: declared.get(at) ?? null,
    }))
}

function reportOf(mock: MockGroup, month: string, nowMs: number): SlaReport {
  const [year = 1970, number = 1] = month.split('-').map(Number)
  const startMs = Math.max(Date.UTC(year, number - 1, 1), Date.parse(mock.group.created_at))
  const endMs = Math.min(Date.UTC(year, number, 1), nowMs)
  const counted = mock.traffic ? Math.max(0, Math.floor((endMs - startMs) / 60_000)) : 0
  const incidents = counted > 400 ? incidentsOf(mock.story, startMs) : []
  const clause = (name: 'availability' | 'throughput' | 'latency', target: number) => {
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
  const clauses = [clause('availability', 0.9995), clause('throughput', 0.999), clause('latency', 0.99)]
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
  return { start, end, reason: reason.slice(DECLARED.length), created_at: end }
}

/** Bad minutes as if each were bad as a whole, and none of the last hours. */
function budgetOf(name: string, target: number, bad: number, counted: number, whole: number) {
  const unit = name === 'availability' ? 1_400 : 1
  const allowed = Math.floor(whole * (name === 'availability' ? 60_000 : 1) * (1 - target))
  const month = counted === 0 ? null : Math.round((bad * 1_000) / counted / (1 - target)) / 1_000
  const recent = counted === 0 ? null : 0
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

const listInvoices = http.get(
  '/v1/invoices',
  ({ request }) =>
    refuseStranger(request) ??
    page(
      database().invoices.map(({ lines: _lines, taxes: _taxes, ...head }) => head),
      request,
    ),
)

const currentInvoice = http.get('/v1/invoices/current', ({ request }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const now = new Date()
  const start = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1)
  const end = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)
  return HttpResponse.json(invoiceOf(null, null, start, end, now.getTime(), database().groups, 'open'))
})

const getInvoice = http.get('/v1/invoices/:id', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const invoice = database().invoices.find((each) => each.id === params.id)
  return invoice ? HttpResponse.json(invoice) : notFound('invoice')
})

/** A PDF without pages, and the amounts alone: what matters here is that files arrive. */
const documents = ['/v1/invoices/current', '/v1/invoices/:id'].flatMap((invoice) => [
  http.get(
    `${invoice}/document.pdf`,
    ({ request }) =>
      refuseStranger(request) ??
      new HttpResponse('%PDF-1.7\n%%EOF\n', { headers: { 'content-type': 'application/pdf' } }),
  ),
  http.get(`${invoice}/lines.csv`, ({ request, params }) => {
    const refusal = refuseStranger(request)
    if (refusal) return refusal
    const lines = database().invoices.find((each) => each.id === params.id)?.lines ?? []
    const rows = ['group,amount_micros', ...lines.map((line) => `${line.group_name},${line.amount_micros}`)]
    return new HttpResponse(rows.join('\r\n'), { headers: { 'content-type': 'text/csv; charset=utf-8' } })
  }),
])

const quotas = http.get('/v1/quotas', ({ request }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const { projects, groups, keys } = database()
  const rate = groups.reduce((sum, { group }) => sum + group.sla.rate_per_s, 0)
  return HttpResponse.json({
    items: [
      { code: 'projects', description: 'Projects', limit: 20, used: projects.length, unit: 'project' },
      {
        code: 'groups_per_project',
        description: 'Groups of one project (the fullest is shown)',
        limit: 5,
        used: groups.length,
        unit: 'group',
      },
      {
        code: 'keys_per_project',
        description: 'API keys of one project (the fullest is shown)',
        limit: 100,
        used: keys.length,
        unit: 'key',
      },
      {
        code: 'total_rate_per_s',
        description: 'Reserved appends per second, all groups',
        limit: 10_000_000,
        used: rate,
        unit: 'append/s',
      },
    ],
  })
})

export const telemetry = [
  live,
  metrics,
  sla,
  badMinutes,
  listInvoices,
  currentInvoice,
  getInvoice,
  ...documents,
  quotas,
]
