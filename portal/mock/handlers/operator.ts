import { http, HttpResponse } from 'msw'
import type { JoinToken, NewIncident, NewUpdate, OperatorEvent, Server, StatusIncident } from '@/api'
import { database, newId, persist } from '../db'
import { capacityOf } from '../fleet'
import { invalid, notFound, page, problem } from '../reply'

const TOKEN = /^Bearer qos_/
const HOUR_MS = 3_600_000

type Params = Record<string, unknown>
type Answer = (request: Request, params: Params) => Response | Promise<Response>

/** A handler for whoever has an operator's token. */
export const forOperators =
  (answer: Answer) =>
  ({ request, params }: { request: Request; params: Params }) =>
    TOKEN.test(request.headers.get('authorization') ?? '')
      ? answer(request, params)
      : problem('credentials_invalid', 'This is not a token for operators of this API.')

export function record(operation: string, request: Request, body: unknown = null) {
  const db = database()
  const event: OperatorEvent = {
    seq: db.operatorEvents.length + 1,
    at: new Date().toISOString(),
    operation,
    subject: new URL(request.url).pathname,
    operator: 'ada@example.com',
    session: newId(),
    address: '203.0.113.9',
    request_id: 'req_mock000000000009',
    request: body,
    hash: 'a'.repeat(64),
  }
  db.operatorEvents.unshift(event)
  persist()
}

const ofServer = (change: (server: Server) => void, operation: string) =>
  forOperators((request, { serverId }) => {
    const server = database().servers.find((each) => String(each.server_id) === serverId)
    if (!server) return notFound('server')
    change(server)
    record(operation, request)
    return HttpResponse.json(server)
  })

const servers = [
  http.get(
    '/v1/operator/servers',
    forOperators(() => HttpResponse.json({ items: database().servers })),
  ),
  http.get(
    '/v1/operator/capacity',
    forOperators(() => HttpResponse.json(capacityOf(database().servers))),
  ),
  http.post(
    '/v1/operator/servers/:serverId/drain',
    ofServer((server) => {
      server.draining = true
      const progress = { moving: 2, waiting: server.replicas, scarce_resource: null, drained_at: null }
      const message = `2 replicas move, ${String(server.replicas)} wait for their turn`
      server.drain = { state: 'draining', since: new Date().toISOString(), message, ...progress }
    }, 'drain_server'),
  ),
  http.delete(
    '/v1/operator/servers/:serverId/drain',
    ofServer((server) => Object.assign(server, { draining: false, drain: null }), 'call_off_drain'),
  ),
  http.delete(
    '/v1/operator/servers/:serverId',
    forOperators((request, { serverId }) => {
      const db = database()
      db.servers = db.servers.filter((each) => String(each.server_id) !== serverId)
      record('give_up_server', request)
      return new HttpResponse(null, { status: 204 })
    }),
  ),
]

const joinTokens = [
  http.get(
    '/v1/operator/join-tokens',
    forOperators(() => HttpResponse.json({ items: database().joinTokens })),
  ),
  http.post(
    '/v1/operator/join-tokens',
    forOperators(async (request) => {
      const { name = null } = (await request.json()) as { name?: string | null }
      const id = newId().replaceAll('-', '').slice(-16)
      const expires_at = new Date(Date.now() + HOUR_MS).toISOString()
      database().joinTokens.unshift({ id, name, auxiliary: false, state: 'outstanding', expires_at, server_id: null })
      record('create_join_token', request, { name })
      const made: JoinToken = { id, token: `qj_${'x'.repeat(40)}`, name, auxiliary: false, expires_at }
      return HttpResponse.json(made, { status: 201 })
    }),
  ),
  http.delete(
    '/v1/operator/join-tokens/:tokenId',
    forOperators((request, { tokenId }) => {
      const token = database().joinTokens.find((each) => each.id === tokenId)
      if (!token) return notFound('join token')
      token.state = 'revoked'
      record('revoke_join_token', request)
      return new HttpResponse(null, { status: 204 })
    }),
  ),
]

const suspend =
  (reason: string | null, operation: string) =>
  (request: Request, { id }: Params) => {
    const tenant = database().tenants.find((each) => each.id === id)
    if (!tenant) return notFound('organization')
    tenant.standing = reason === null ? 'active' : 'suspended'
    record(operation, request, reason === null ? null : { reason })
    return HttpResponse.json({ id: tenant.id, name: tenant.name })
  }

const tenants = [
  http.get(
    '/v1/operator/organizations',
    forOperators((request) => {
      const search = new URL(request.url).searchParams.get('search')?.toLowerCase() ?? ''
      return page(
        database().tenants.filter((each) => each.name.toLowerCase().includes(search) || each.id === search),
        request,
      )
    }),
  ),
  http.put(
    '/v1/operator/organizations/:id/suspension',
    forOperators(async (request, params) => {
      const { reason } = (await request.clone().json()) as { reason: string }
      return reason ? suspend(reason, 'suspend_organization')(request, params) : invalid('reason', 'Say why.')
    }),
  ),
  http.delete('/v1/operator/organizations/:id/suspension', forOperators(suspend(null, 'end_suspension'))),
]

const sharing = [
  http.get(
    '/v1/operator/sharing',
    forOperators(() =>
      HttpResponse.json({
        policy: 'drf',
        rounds: 4_120,
        servers: 3,
        groups_wanting: 4,
        groups_satisfied: 1,
        took_us: 840,
        ended_at: new Date().toISOString(),
      }),
    ),
  ),
  http.get(
    '/v1/operator/lending',
    forOperators((request) =>
      page(
        database().groups.map(({ group }, place) => ({
          group_id: group.id,
          epoch: 1,
          server_id: 1,
          server_name: 's1',
          borrowed_per_s: place * 1_200,
          borrowed_since: null,
          bounded_by: place % 2 ? 'cpu' : null,
          bounded_by_server_id: null,
          lent_per_s: 300,
          observed_at: new Date().toISOString(),
        })),
        request,
      ),
    ),
  ),
]

const incidents = [
  http.post(
    '/v1/operator/incidents',
    forOperators(async (request) => {
      const { title, components, impact, phase = 'investigating', message } = (await request.json()) as NewIncident
      const at = new Date().toISOString()
      const first = { id: newId(), at, phase, impact, message }
      const opened: StatusIncident = {
        ...{ id: newId(), title, components, impact, phase, regions: ['eu-north', 'us-east'], opened_at: at },
        ...{ resolved_at: null, updates: [first] },
      }
      database().incidents.unshift(opened)
      record('open_incident', request, { title, message })
      return HttpResponse.json(opened, { status: 201 })
    }),
  ),
  http.post(
    '/v1/operator/incidents/:id/updates',
    forOperators(async (request, { id }) => {
      const incident = database().incidents.find((each) => each.id === id)
      if (!incident) return notFound('incident')
      const { phase, message } = (await request.json()) as NewUpdate
      const at = new Date().toISOString()
      incident.phase = phase
      incident.resolved_at = phase === 'resolved' ? at : null
      incident.updates.unshift({ id: newId(), at, phase, impact: incident.impact, message })
      record('update_incident', request, { phase, message })
      return HttpResponse.json(incident, { status: 201 })
    }),
  ),
]

const own = [
  http.get(
    '/v1/operator/me',
    forOperators(() =>
      HttpResponse.json({
        name: 'ada@example.com',
        expires_at: new Date(Date.now() + 8 * HOUR_MS).toISOString(),
      }),
    ),
  ),
  http.get(
    '/v1/operator/audit',
    forOperators((request) => page(database().operatorEvents, request)),
  ),
  http.get(
    '/v1/operator/audit/export',
    forOperators(() => new HttpResponse('{}\n', { headers: { 'content-type': 'application/jsonl' } })),
  ),
]

export const operators = [...own, ...servers, ...joinTokens, ...tenants, ...sharing, ...incidents]
