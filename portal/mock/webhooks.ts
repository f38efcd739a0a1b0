import type { Delivery, Webhook } from '@/api'
import { uuid } from './records'

const HOUR_MS = 3_600_000

/** The mock service's webhooks at the start: one that works, and one whose receiver fails. */
export function seedWebhooks(nowMs: number): { webhooks: Webhook[]; deliveries: Record<string, Delivery[]> } {
  const iso = (ms: number) => new Date(ms).toISOString()
  const webhook = (n: number, url: string, description: string, event_types: Webhook['event_types']): Webhook => ({
    id: uuid(n),
    url,
    description,
    event_types,
    status: 'enabled',
    failing_since: null,
    former_secret_until: null,
    created_at: iso(nowMs - 20 * 24 * HOUR_MS),
    updated_at: iso(nowMs - 20 * 24 * HOUR_MS),
  })
  const pager = webhook(80, 'https://hooks.example.com/quorate/pager', 'On-call pager', [
    'group.status_changed',
    'budget.cap_reached',
  ])
  const audit = webhook(81, 'https://siem.example.com/ingest', '', ['audit.recorded'])
  audit.failing_since = iso(nowMs - 2 * HOUR_MS)
  const delivered = (n: number, event_type: Delivery['event_type'], hours: number): Delivery => ({
    id: uuid(n),
    event_id: `msg_${uuid(n).replaceAll('-', '')}`,
    event_type,
    event_at: iso(nowMs - hours * HOUR_MS),
    status: 'delivered',
    attempts: 1,
    next_at: null,
    last_at: iso(nowMs - hours * HOUR_MS),
    last_http_status: 200,
    last_error: null,
    last_duration_ms: 30 + n,
  })
  const error = 'The receiver answered 503; 2xx means that it has the event.'
  const trying: Delivery = {
    ...delivered(84, 'audit.recorded', 2),
    status: 'waiting',
    attempts: 3,
    next_at: iso(nowMs + HOUR_MS / 2),
    last_http_status: 503,
    last_error: error,
  }
  const failed: Delivery = { ...trying, ...{ id: uuid(85), status: 'failed', attempts: 10, next_at: null } }
  return {
    webhooks: [pager, audit],
    deliveries: {
      [pager.id]: [delivered(82, 'group.status_changed', 1), delivered(83, 'budget.cap_reached', 30)],
      [audit.id]: [trying, { ...failed, event_at: iso(nowMs - 90 * HOUR_MS) }],
    },
  }
}
