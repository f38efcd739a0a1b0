import type { AuditEvent, Member, Passkey, Role, Session } from '@/api'
import { uuid } from './records'

/** The mock service's account at the start. */
export const ACCOUNT = { email: 'you@example.com', password: 'correct horse battery' }
const DAY_MS = 86_400_000
const iso = (ms: number) => new Date(ms).toISOString()

export function seedMembers(nowMs: number): Member[] {
  const member = (n: number, email: string, role: Role, days: number) => ({
    user_id: uuid(n),
    email,
    role,
    joined_at: iso(nowMs - days * DAY_MS),
    is_you: n === 9,
  })
  return [
    member(9, ACCOUNT.email, 'owner', 61),
    member(60, 'ops@example.com', 'admin', 50),
    member(61, 'developer@example.com', 'developer', 20),
  ]
}

export function seedAudit(nowMs: number): AuditEvent[] {
  const event = (seq: number, operation: string, subject: string, request: unknown, isKey = false): AuditEvent => ({
    seq,
    at: iso(nowMs - (70 - seq) * 5 * 60_000),
    operation,
    subject,
    actor: {
      kind: isKey ? 'key' : 'person',
      id: uuid(isKey ? 21 : 9),
      name: isKey ? 'nightly export' : ACCOUNT.email,
      credential: uuid(90),
    },
    address: '203.0.113.7',
    user_agent: isKey
      ? 'quorate-python/0.1.0'
      : 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
    request_id: `req_mock${String(seq).padStart(12, '0')}`,
    request,
    created_id: null,
    hash: 'c0ffee'.repeat(11).slice(0, 64),
  })
  const earlier = Array.from({ length: 61 }, (_, n) => event(61 - n, 'log_in', '/v1/login', { email: ACCOUNT.email }))
  return [
    event(65, 'change_role', '/v1/organization/members/x', { role: 'developer' }),
    event(64, 'resize_group', '/v1/groups/x', { rate_per_s: 8_000 }, true),
    event(63, 'create_key', '/v1/projects/x/keys', { name: 'laptop', scopes: ['append', 'read'] }),
    event(62, 'create_group', '/v1/projects/x/groups', { name: 'orders', durability: 'persistent', rate_per_s: 5_000 }),
    ...earlier,
  ]
}

export function seedPasskeys(nowMs: number): Passkey[] {
  const added = iso(nowMs - 20 * DAY_MS)
  return [{ id: uuid(75), name: 'Firefox on Linux', created_at: added, last_used_at: iso(nowMs - 3 * 3_600_000) }]
}

export function seedSessions(nowMs: number): Session[] {
  const session = (n: number, user_agent: string, seenMs: number) => ({
    id: uuid(n),
    organization_id: uuid(8),
    organization_name: 'Example Ltd',
    created_at: iso(nowMs - 2 * DAY_MS),
    last_seen_at: iso(nowMs - seenMs),
    expires_at: iso(nowMs + 12 * DAY_MS),
    address: '203.0.113.7',
    user_agent,
    is_current: n === 70,
  })
  return [
    session(70, 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 0),
    session(71, 'Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Safari/604.1', 3 * 3_600_000),
  ]
}
