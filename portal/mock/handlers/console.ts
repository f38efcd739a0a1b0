import { http, HttpResponse } from 'msw'
import type { Admission, NewCorrection, NewPaymentEntry } from '@/api'
import { database, newId, persist } from '../db'
import { notFound, page } from '../reply'
import { forOperators, record } from './operator'
import { quotasNow } from './quotas'

const HOUR_MS = 3_600_000
const nowIso = (agoMs = 0) => new Date(Date.now() - agoMs).toISOString()

function admissions(): Admission[] {
  const { tenants } = database()
  const of = (n: number, more: Partial<Admission>): Admission => ({
    id: `00000000-0000-4000-8000-0000000a0${String(100 + n)}`,
    organization_id: tenants[n % tenants.length]?.id ?? newId(),
    organization_name: tenants[n % tenants.length]?.name ?? '',
    at: nowIso(n * HOUR_MS),
    operation: 'create_group',
    subject: '/v1/projects/x/groups',
    asked: { name: `group-${String(n)}`, rate_per_s: 20_000 },
    outcome: 'admitted',
    code: null,
    reason: null,
    scarce_resource: null,
    message: null,
    ...more,
  })
  const refused = { outcome: 'refused', code: 'admission_refused', reason: 'insufficient_capacity' } as const
  return [
    of(0, {
      ...refused,
      scarce_resource: 'storage_io',
      message: 'Not enough storage operations: 410,256/s would fit.',
    }),
    of(1, {}),
    of(2, { outcome: 'refused', code: 'quota_exceeded', message: 'The quota groups_per_project allows 3.' }),
    of(3, { operation: 'resize_group', asked: { rate_per_s: 8_000 } }),
  ]
}

const quotas = () => HttpResponse.json({ items: quotasNow() })

function setLimit(code: string, limit: number | null): Response {
  const db = database()
  if (limit === null) delete db.quotaLimits[code]
  else db.quotaLimits[code] = limit
  delete db.quotaRequests[code]
  persist()
  return quotas()
}

const ofOrganizations = [
  http.get('/v1/operator/organizations/:id/quotas', forOperators(quotas)),
  http.put(
    '/v1/operator/organizations/:id/quotas/:quota',
    forOperators(async (request, { quota }) => {
      const { limit } = (await request.clone().json()) as { limit: number }
      record('set_organization_quota', request, { limit })
      return setLimit(String(quota), limit)
    }),
  ),
  http.delete(
    '/v1/operator/organizations/:id/quotas/:quota',
    forOperators((request, { quota }) => {
      record('reset_organization_quota', request)
      return setLimit(String(quota), null)
    }),
  ),
  http.post(
    '/v1/operator/organizations/:id/quotas/:quota/decline',
    forOperators((request, { quota }) => {
      delete database().quotaRequests[String(quota)]
      record('decline_quota_request', request)
      return new HttpResponse(null, { status: 204 })
    }),
  ),
  http.get(
    '/v1/operator/quota-requests',
    forOperators(() => {
      const { quotaRequests, tenants } = database()
      const [first] = tenants
      const items = Object.entries(quotaRequests).map(([code, wanted]) => ({
        organization_id: first?.id ?? '',
        organization_name: first?.name ?? '',
        code,
        wanted,
        reason: 'A load test in May.',
        asked_by: 'you@example.com',
        created_at: nowIso(HOUR_MS),
      }))
      return HttpResponse.json({ items })
    }),
  ),
  http.post(
    '/v1/operator/organizations/:id/views',
    forOperators((request) => {
      record('view_organization', request)
      return HttpResponse.json({ token: 'qv_mock', expires_at: nowIso(-HOUR_MS / 2) }, { status: 201 })
    }),
  ),
]

const money = [
  http.get(
    '/v1/operator/invoices',
    forOperators((request) => {
      const number = new URL(request.url).searchParams.get('number')
      const found = database().invoices.filter((invoice) => invoice.number === number)
      const items = found.map(({ id, number: name, total_micros, currency, issued_at, payment }) => ({
        ...{ id, organization_id: newId(), number: name, total_micros, currency, issued_at },
        due_at: payment?.due_at ?? null,
      }))
      return HttpResponse.json({ items })
    }),
  ),
  http.get(
    '/v1/operator/invoices/:id/payments',
    forOperators((_request, { id }) => {
      const invoice = database().invoices.find((each) => each.id === id)
      if (!invoice?.payment) return notFound('invoice')
      const items = database().payments[String(id)] ?? []
      return HttpResponse.json({ items, next_cursor: null, payment: invoice.payment })
    }),
  ),
  http.post(
    '/v1/operator/invoices/:id/payments',
    forOperators(async (request, { id }) => {
      const db = database()
      const payment = db.invoices.find((each) => each.id === id)?.payment
      if (!payment) return notFound('invoice')
      const { kind = 'payment', amount_micros, reference } = (await request.clone().json()) as NewPaymentEntry
      const amount = amount_micros ?? 0
      payment.paid_micros += amount
      payment.due_micros -= amount
      const entry = { id: newId(), kind, provider: 'manual' as const, reference, amount_micros: amount }
      const entries = [{ ...entry, reverses_id: null, at: nowIso() }, ...(db.payments[String(id)] ?? [])]
      db.payments[String(id)] = entries
      record('record_payment', request, { reference })
      return HttpResponse.json({ entry: entries[0], payment }, { status: 201 })
    }),
  ),
  http.get(
    '/v1/operator/groups/:id/corrections',
    forOperators((request) => page(database().corrections, request)),
  ),
  http.post(
    '/v1/operator/groups/:id/corrections',
    forOperators(async (request) => {
      const body = (await request.clone().json()) as NewCorrection
      const { kind, reason, quantity = null, day = null, start = null, end = null } = body
      const made = { id: newId(), kind, reason, quantity, day, start, end, author: 'ada', created_at: nowIso() }
      database().corrections.unshift(made)
      record('create_correction', request, { reason })
      return HttpResponse.json(made, { status: 201 })
    }),
  ),
  http.get(
    '/v1/operator/prices',
    forOperators(() =>
      HttpResponse.json({
        currency: 'USD',
        items: [
          {
            valid_from: '2026-01-01T00:00:00Z',
            is_held: true,
            resources: [
              { resource: 'cpu', unit: 'core', hourly_micros: 80_000 },
              { resource: 'storage_io', unit: '1000 operations/s', hourly_micros: 1_200 },
            ],
            usage: [{ kind: 'appends', label: 'Appended entries', per: 'million entries', price_micros: 150_000 }],
            guarantee_hourly_micros: 150_000,
            commitments: [{ months: 12, percent_off: 20 }],
          },
        ],
      }),
    ),
  ),
]

const fleet = [
  http.get(
    '/v1/operator/admissions',
    forOperators((request) => {
      const outcome = new URL(request.url).searchParams.get('outcome')
      return page(
        admissions().filter((each) => !outcome || each.outcome === outcome),
        request,
      )
    }),
  ),
  http.get(
    '/v1/operator/admissions/counts',
    forOperators(() =>
      HttpResponse.json({
        since: nowIso(24 * HOUR_MS),
        items: [
          { outcome: 'admitted', code: null, reason: null, scarce_resource: null, count: 41 },
          {
            ...{ outcome: 'refused', code: 'admission_refused', reason: 'insufficient_capacity' },
            ...{ scarce_resource: 'storage_io', count: 7 },
          },
          { outcome: 'refused', code: 'quota_exceeded', reason: null, scarce_resource: null, count: 2 },
        ],
      }),
    ),
  ),
  http.get(
    '/v1/operator/servers/:id/replicas',
    forOperators((request, { id }) => {
      const [tenant] = database().tenants
      const rows = database().groups.map(({ group }, place) => ({
        group_id: group.id,
        name: group.name,
        organization_id: tenant?.id ?? '',
        organization_name: tenant?.name ?? '',
        status: group.status,
        role: ['head', 'middle', 'tail'][(place + Number(id)) % 3] ?? 'head',
        is_learner: false,
        rate_per_s: group.sla.rate_per_s,
        durability: group.sla.durability,
      }))
      return page(id === '4' ? [] : rows, request)
    }),
  ),
]

export const consoles = [...ofOrganizations, ...money, ...fleet]
