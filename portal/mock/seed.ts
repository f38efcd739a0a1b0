import type { ApiKey, Group, GroupEvent, Relocation, Sla } from '@/api'
import { priceOf, promiseOf } from './admission'
import { seedServers, seedTenants } from './fleet'
import { seedInvoices } from './invoices'
import { seedPayments } from './payments'
import { ACCOUNT, seedMembers, seedPasskeys, seedSessions } from './people'
import { uuid, withDefaults, type MockDb, type MockGroup } from './records'
import { seedBudgets } from './spend'
import { seedWebhooks } from './webhooks'

const DAY_MS = 86_400_000

export function seed(nowMs: number): MockDb {
  const projects = [
    { id: uuid(1), name: 'production', created_at: iso(nowMs - 61 * DAY_MS) },
    { id: uuid(2), name: 'staging', created_at: iso(nowMs - 40 * DAY_MS) },
    // Sentinel: the lists of this project answer 503, to show the error state of pages.
    { id: uuid(3), name: 'unreachable', created_at: iso(nowMs - 12 * DAY_MS) },
  ]
  const groups = seedGroups(nowMs)
  const invoices = seedInvoices(nowMs, groups)
  const db: MockDb = {
    session: null,
    users: [{ id: uuid(9), ...ACCOUNT, created_at: iso(nowMs - 61 * DAY_MS), email_verified: true }],
    members: seedMembers(nowMs),
    invitations: [],
    sessions: seedSessions(nowMs),
    passkeys: seedPasskeys(nowMs),
    identities: [],
    quotaLimits: {},
    quotaRequests: { total_rate_per_s: 20_000_000 },
    corrections: [],
    secondFactor: { totp: false, recovery_codes_left: 0 },
    organization: { id: uuid(8), name: 'Example Ltd', created_at: iso(nowMs - 61 * DAY_MS), standing: 'active' },
    closing_at: null,
    projects,
    groups: [...groups, lostGroup(nowMs)],
    keys: [
      key(20, 'orders service', nowMs - 58 * DAY_MS, nowMs - 40_000),
      key(21, 'nightly export', nowMs - 30 * DAY_MS, nowMs - 7 * 3_600_000),
      key(22, 'laptop', nowMs - 3 * DAY_MS, null),
    ],
    invoices,
    payments: seedPayments(invoices, nowMs),
    budgets: [],
    commitments: [],
    ...seedWebhooks(nowMs),
    servers: seedServers(nowMs),
    joinTokens: [],
    organizationKeys: [],
    moves: [],
    tenants: seedTenants(nowMs),
    incidents: [],
    operatorEvents: [],
    guarantees: {
      [uuid(1)]: {
        terms: { shared_tokens_per_s: 400_000, max_tokens_per_s: null, policy: { name: 'drf', groups: [] } },
        revision: 1,
        since: iso(nowMs - 9 * DAY_MS),
      },
    },
    next: 1_000,
  }
  return { ...db, budgets: seedBudgets(db, nowMs) }
}

function key(n: number, name: string, createdMs: number, usedMs: number | null): ApiKey {
  const used = usedMs === null ? null : iso(usedMs)
  return {
    id: uuid(n),
    project_id: uuid(1),
    name,
    prefix: `qk_${(n * 7_919).toString(36)}x4`,
    scopes: ['append', 'read'],
    created_at: iso(createdMs),
    last_used_at: used,
    expires_at: null,
    former_secret_until: null,
  }
}

function seedGroups(nowMs: number): MockGroup[] {
  const orders: Sla = { durability: 'persistent', replication_degree: 3, request_size_bytes: 64, rate_per_s: 5_000 }
  const sessions: Sla = { durability: 'in_memory', replication_degree: 3, request_size_bytes: 256, rate_per_s: 20_000 }
  const audit: Sla = { durability: 'persistent', replication_degree: 5, request_size_bytes: 1_024, rate_per_s: 800 }
  const idle: Sla = { durability: 'in_memory', replication_degree: 1, request_size_bytes: 64, rate_per_s: 100 }
  return [
    groupOf(nowMs, {
      n: 10,
      name: 'orders',
      sla: orders,
      days: 58,
      status: 'active',
      epoch: 4,
      chain: [1, 2, 4],
      mean: 3_900,
    }),
    groupOf(nowMs, {
      n: 11,
      name: 'sessions',
      sla: sessions,
      days: 40,
      status: 'degraded',
      epoch: 7,
      chain: [3, 5, 2],
      dead: 5,
      learners: [1],
      mean: 14_500,
      story: 1,
    }),
    groupOf(nowMs, {
      n: 12,
      name: 'audit-trail',
      sla: audit,
      days: 26,
      status: 'active',
      epoch: 1,
      chain: [5, 1, 3, 2, 4],
      learners: [6],
      mean: 310,
      growsTo: { rate_per_s: 4 * audit.rate_per_s, moves: [{ from_server: 4, to_server: 6 }] },
    }),
    groupOf(nowMs, { n: 13, name: 'feature-flags', sla: idle, days: 2, status: 'active', epoch: 1, chain: [4] }),
  ]
}

/** Every replica was lost an hour ago. Nothing has been billed. */
function lostGroup(nowMs: number): MockGroup {
  const sla: Sla = { durability: 'in_memory', replication_degree: 1, request_size_bytes: 64, rate_per_s: 50 }
  return groupOf(nowMs, { n: 14, name: 'presence', sla, days: 1, status: 'lost', epoch: 3, chain: [] })
}

interface Spec {
  n: number
  name: string
  sla: Sla
  days: number
  status: Group['status']
  epoch: number
  chain: number[]
  dead?: number
  learners?: number[]
  /** A resize that begins after these moves. */
  growsTo?: { rate_per_s: number; moves: Relocation['moves'] }
  mean?: number
  story?: number
}

function groupOf(nowMs: number, spec: Spec): MockGroup {
  const createdMs = nowMs - spec.days * DAY_MS
  return {
    group: {
      id: uuid(spec.n),
      project_id: uuid(1),
      name: spec.name,
      sla: withDefaults(spec.sla),
      promise: promiseOf(withDefaults(spec.sla)),
      access: 'full',
      status: spec.status,
      epoch: spec.epoch,
      price: priceOf(withDefaults(spec.sla)),
      resizing: spec.growsTo ? resizeOf(spec.sla, spec.growsTo.rate_per_s) : null,
      created_at: iso(createdMs),
      observed_at: iso(nowMs),
    },
    traffic: spec.mean
      ? { since_ms: createdMs + 60_000, mean_per_s: spec.mean, reserved_per_s: spec.sla.rate_per_s, seed: spec.n }
      : null,
    chain: spec.chain.map((server) => ({ server_id: server, alive: server !== spec.dead })),
    learners: spec.learners ?? [],
    relocation: spec.growsTo && {
      cause: 'resize',
      since: iso(nowMs - 40_000),
      moves: spec.growsTo.moves,
      scarce_resource: null,
    },
    events: history(nowMs, createdMs, spec),
    story: spec.story ?? 0,
  }
}

function resizeOf(sla: Sla, rate_per_s: number): Group['resizing'] {
  const asked = withDefaults({ ...sla, rate_per_s })
  return { sla: asked, price: priceOf(asked) }
}

function history(nowMs: number, createdMs: number, spec: Spec): GroupEvent[] {
  const events: GroupEvent[] = [
    {
      id: '1',
      server_id: null,
      at: iso(createdMs),
      kind: 'group_admitted',
      epoch: 1,
      status: 'provisioning',
      message: `Admitted with ${spec.sla.replication_degree} replicas.`,
    },
    {
      id: '2',
      server_id: null,
      at: iso(createdMs + 900),
      kind: 'group_status',
      epoch: 1,
      status: 'active',
      message: 'Every replica is in place; appends are accepted.',
    },
  ]
  for (let epoch = 2; epoch <= spec.epoch; epoch += 1) {
    const at = nowMs - (spec.epoch - epoch) * 5 * DAY_MS - 95_000
    const message =
      epoch % 2 === 0
        ? 'A replica was lost and spliced out of the chain.'
        : 'The replacement caught up and joined as the new tail.'
    events.push({
      id: String(events.length + 1),
      server_id: null,
      at: iso(at),
      kind: 'group_configured',
      epoch,
      status: epoch % 2 === 0 ? 'degraded' : 'active',
      message,
    })
  }
  if (spec.dead) {
    events.push({
      id: String(events.length + 1),
      server_id: spec.dead,
      at: iso(nowMs - 42_000),
      kind: 'server_failed',
      epoch: spec.epoch,
      status: 'degraded',
      message: `Server s${spec.dead} stopped answering; server s${spec.learners?.[0]} is catching up in its place.`,
    })
  }
  return events.toReversed()
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}
