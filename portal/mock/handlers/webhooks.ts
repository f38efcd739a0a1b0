import { http, HttpResponse } from 'msw'
import type { ChangedWebhook, Delivery, NewWebhook, Webhook } from '@/api'
import { database, newId, persist } from '../db'
import { invalid, notFound, page, refuseStranger } from '../reply'

const SECRET = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDZWpCdvPT7iM='
/** A waiting delivery has arrived by its next look. */
const ARRIVAL_MS = 1_000

type Answer = (webhook: Webhook, request: Request, params: Record<string, unknown>) => Response | Promise<Response>

/** A handler for one webhook of who is logged in. */
const ofWebhook =
  (answer: Answer) =>
  ({ request, params }: { request: Request; params: Record<string, unknown> }) => {
    const webhook = database().webhooks.find((each) => each.id === params.webhookId)
    return refuseStranger(request) ?? (webhook ? answer(webhook, request, params) : notFound('webhook'))
  }

function deliver(webhook: Webhook, event_type: Delivery['event_type']): Delivery {
  const at = new Date().toISOString()
  const delivery: Delivery = {
    id: newId(),
    event_id: `msg_${newId().replaceAll('-', '')}`,
    event_type,
    event_at: at,
    status: 'waiting',
    attempts: 0,
    next_at: at,
    last_at: null,
    last_http_status: null,
    last_error: null,
    last_duration_ms: null,
  }
  const db = database()
  db.deliveries[webhook.id] = [delivery, ...(db.deliveries[webhook.id] ?? [])]
  persist()
  return delivery
}

function arrived(delivery: Delivery): Delivery {
  if (delivery.status !== 'waiting' || delivery.attempts > 0) return delivery
  if (Date.now() - Date.parse(delivery.next_at ?? delivery.event_at) < ARRIVAL_MS) return delivery
  return Object.assign(delivery, {
    status: 'delivered',
    attempts: 1,
    next_at: null,
    last_at: new Date().toISOString(),
    last_http_status: 200,
    last_error: null,
    last_duration_ms: 41,
  })
}

function wrong(url: string) {
  return url.startsWith('https://')
    ? null
    : invalid('url', 'Must begin with https://: events are not sent in the clear.')
}

export const webhooks = [
  http.get('/v1/webhooks', ({ request }) => refuseStranger(request) ?? page(database().webhooks, request)),
  http.post('/v1/webhooks', async ({ request }) => {
    const refusal = refuseStranger(request)
    if (refusal) return refusal
    const { url, description = '', event_types = [] } = (await request.json()) as NewWebhook
    const at = new Date().toISOString()
    const fresh = { failing_since: null, former_secret_until: null, created_at: at, updated_at: at }
    const webhook: Webhook = { id: newId(), url, description, event_types, status: 'enabled', ...fresh }
    const refused = wrong(url)
    if (refused) return refused
    database().webhooks.unshift(webhook)
    persist()
    return HttpResponse.json({ ...webhook, secret: SECRET }, { status: 201 })
  }),
  http.get(
    '/v1/webhooks/:webhookId',
    ofWebhook((webhook) => HttpResponse.json(webhook)),
  ),
  http.put(
    '/v1/webhooks/:webhookId',
    ofWebhook(async (webhook, request) => {
      const body = (await request.json()) as ChangedWebhook
      const refused = wrong(body.url)
      if (refused) return refused
      Object.assign(webhook, body, { updated_at: new Date().toISOString(), failing_since: null })
      persist()
      return HttpResponse.json(webhook)
    }),
  ),
  http.delete(
    '/v1/webhooks/:webhookId',
    ofWebhook((webhook) => {
      const db = database()
      db.webhooks = db.webhooks.filter((each) => each.id !== webhook.id)
      persist()
      return new HttpResponse(null, { status: 204 })
    }),
  ),
  http.post(
    '/v1/webhooks/:webhookId/rotate',
    ofWebhook(async (webhook, request) => {
      const { grace_s = 0 } = (await request.json()) as { grace_s?: number }
      const until = new Date(Date.now() + grace_s * 1_000).toISOString()
      webhook.former_secret_until = grace_s > 0 ? until : null
      persist()
      return HttpResponse.json({ id: webhook.id, secret: SECRET, former_secret_until: until })
    }),
  ),
  http.post(
    '/v1/webhooks/:webhookId/test',
    ofWebhook((webhook) => HttpResponse.json(deliver(webhook, 'webhook.test'), { status: 202 })),
  ),
  http.get(
    '/v1/webhooks/:webhookId/deliveries',
    ofWebhook((webhook, request) => {
      const found = (database().deliveries[webhook.id] ?? []).map(arrived)
      persist()
      return page(found, request)
    }),
  ),
  http.post(
    '/v1/webhooks/:webhookId/deliveries/:deliveryId/resend',
    ofWebhook((webhook, _request, { deliveryId }) => {
      const delivery = database().deliveries[webhook.id]?.find((each) => each.id === deliveryId)
      if (!delivery) return notFound('delivery')
      Object.assign(delivery, { status: 'waiting', attempts: 0, last_at: null, next_at: new Date().toISOString() })
      persist()
      return HttpResponse.json(delivery, { status: 202 })
    }),
  ),
  http.post(
    '/v1/webhooks/:webhookId/replay',
    ofWebhook((webhook) => {
      const failed = (database().deliveries[webhook.id] ?? []).filter((each) => each.status === 'failed')
      for (const each of failed)
        Object.assign(each, { status: 'waiting', attempts: 0, next_at: new Date().toISOString() })
      persist()
      return HttpResponse.json({ count: failed.length, next_since: null }, { status: 202 })
    }),
  ),
]
