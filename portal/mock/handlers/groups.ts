import { http, HttpResponse } from 'msw'
import type { Group, GroupCosts, GroupPartitions, ObservedSla, Placement, Resize, Sla } from '@/api'
import { priceOf, promiseOf, quoteOf, roleAt } from '../admission'
import { database, newId, persist, PROVISIONING_MS } from '../db'
import { withDefaults, type MockGroup } from '../records'
import { groupById, invalid, notFound, page, problem, refuseStranger, sentinel } from '../reply'

/** A group is placed a moment after its admission. The clock decides, so that no timer is needed. */
function observed(mock: MockGroup): Group {
  const { group } = mock
  if (group.status !== 'provisioning') return group
  const age = Date.now() - Date.parse(group.created_at)
  return age < PROVISIONING_MS ? group : { ...group, status: 'active', observed_at: new Date().toISOString() }
}

const quotes = http.post('/v1/quotes', async ({ request }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const sla = (await request.json()) as Sla
  if (sla.request_size_bytes > 2 ** 20) return invalid('body.request_size_bytes', 'At most 1,048,576 bytes.')
  const { partitions: _divided, replaces_group_id: _replaced, project_id: _project, ...asked } = sla
  return HttpResponse.json(quoteOf(withDefaults(asked)))
})

const listGroups = http.get('/v1/projects/:id/groups', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const project = database().projects.find((each) => each.id === params.id)
  if (!project) return notFound('project')
  if (project.name === 'unreachable')
    return problem('coordinator_unavailable', 'The service cannot be read right now. Existing groups go on serving.')
  return page(
    database()
      .groups.filter(({ group }) => group.project_id === params.id)
      .map(observed),
    request,
  )
})

const createGroup = http.post('/v1/projects/:id/groups', async ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const { name, partitions = 1, ...asked } = (await request.json()) as Sla & { name: string }
  const failing = sentinel(name)
  if (failing) return failing
  const db = database()
  if (db.groups.some(({ group }) => group.project_id === params.id && group.name === name))
    return problem('name_taken', `There is a group "${name}" in this project already. Choose another name.`)
  const sla = withDefaults(asked)
  const quote = quoteOf(sla)
  // Sentinel: another group takes the last free capacity between the quote and the creation.
  const beaten = name === 'fail-refused'
  const admission = beaten ? quoteOf({ ...sla, rate_per_s: 90_000_000 }).refusal : quote.refusal
  if (admission) {
    const fits = beaten
      ? { ...sla, rate_per_s: Math.ceil(sla.rate_per_s / 2) }
      : (admission.largest_sla_that_fits ?? null)
    return problem('admission_refused', admission.message, { refusal: { ...admission, largest_sla_that_fits: fits } })
  }
  const now = new Date().toISOString()
  const group: Group = {
    id: newId(),
    project_id: String(params.id),
    name,
    sla,
    promise: promiseOf(sla),
    access: 'full',
    status: 'provisioning',
    epoch: 1,
    partitions: partitions ?? 1,
    price: priceOf(sla),
    created_at: now,
    observed_at: null,
  }
  const chain = Array.from({ length: sla.replication_degree }, (_, index) => ({
    server_id: ((db.next + index) % 5) + 1,
    alive: true,
  }))
  const events = [
    {
      id: '1',
      at: now,
      server_id: null,
      kind: 'group_admitted',
      epoch: 1,
      status: 'provisioning',
      message: `Admitted with ${sla.replication_degree} replicas.`,
    },
  ]
  db.groups.unshift({ group, traffic: null, chain, learners: [], events, story: 0 })
  persist()
  return HttpResponse.json({ ...group, handle: null }, { status: 201, headers: { etag: '"1"' } })
})

const getGroup = http.get('/v1/groups/:id', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const mock = groupById(params.id)
  return mock ? HttpResponse.json(observed(mock), { headers: { etag: '"1"' } }) : notFound('group')
})

const deleteGroup = http.delete('/v1/groups/:id', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const db = database()
  const found = groupById(params.id)
  if (!found) return notFound('group')
  if (found.group.deletion_protection) return problem('deletion_protected', 'The group is protected from deletion.')
  db.groups = db.groups.filter((each) => each !== found)
  persist()
  return new HttpResponse(null, { status: 204 })
})

const resetGroup = http.post('/v1/groups/:id/reset', async ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const mock = groupById(params.id)
  if (!mock) return notFound('group')
  const { epoch } = (await request.json()) as { epoch: number }
  if (mock.group.status !== 'lost' && mock.group.epoch <= epoch)
    return problem('group_not_lost', 'The group is not lost: it keeps its log.')
  if (mock.group.status === 'lost') {
    mock.group = { ...mock.group, status: 'active', epoch: mock.group.epoch + 1, observed_at: new Date().toISOString() }
    mock.chain = [{ server_id: 2, alive: true }]
    persist()
  }
  return HttpResponse.json(mock.group, { headers: { etag: '"2"' } })
})

const placement = http.get('/v1/groups/:id/placement', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const mock = groupById(params.id)
  if (!mock) return notFound('group')
  const status = observed(mock).status
  const chain = status === 'provisioning' ? [] : mock.chain
  const answer: Placement = {
    epoch: mock.group.epoch,
    status,
    observed_at: mock.group.observed_at,
    replicas: chain.map(({ server_id, alive }, position) => server(server_id, roleAt(position, chain.length), alive)),
    learners: mock.learners.map((server_id) => server(server_id, 'learner', true)),
    relocation: mock.relocation ?? null,
  }
  return HttpResponse.json(answer)
})

/** In the mock an entry costs a fixed part, and one for its bytes; alone, three times the fixed part. */
const costs = http.get('/v1/groups/:id/costs', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const mock = groupById(params.id)
  if (!mock) return notFound('group')
  const { request_size_bytes, durability } = mock.group.sla
  const kinds = durability === 'persistent' ? (['append', 'read', 'catch_up'] as const) : (['append', 'read'] as const)
  const sizes = [...new Set([64, 1_024, 16_384, 262_144, request_size_bytes])].toSorted((left, right) => left - right)
  const weight = (size: number, entries: number) => (entries === 1 ? 1_500 : 500) + size
  const answer: GroupCosts = {
    request_size_bytes,
    operations: kinds.flatMap((operation) =>
      sizes.flatMap((size_bytes) =>
        [1, 16].map((entries) => ({
          operation,
          size_bytes,
          entries,
          counts_as: weight(size_bytes, entries) / weight(request_size_bytes, 16),
          cpu_ns: weight(size_bytes, entries),
          network_bytes: size_bytes + 40,
          storage_operations: operation === 'read' ? 0 : 2,
        })),
      ),
    ),
  }
  return HttpResponse.json(answer)
})

function server(id: number, role: string, alive: boolean) {
  return { server_id: id, server_name: `s${id}`, address: `10.0.0.${id}:7001`, role, alive, failure_domain: null }
}

const events = http.get('/v1/groups/:id/events', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const mock = groupById(params.id)
  return mock ? page(mock.events, request) : notFound('group')
})

/** Partitions of the mock are on servers in turn, and are added a moment after they were asked for. */
const partitions = http.get('/v1/groups/:id/partitions', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const mock = groupById(params.id)
  if (!mock) return notFound('group')
  const group = observed(mock)
  const count = group.partitions ?? 1
  const { rate_per_s, replication_degree } = group.sla
  const items = Array.from({ length: count }, (_, number) => ({
    partition: number,
    group_id: number === 0 ? group.id : `${group.id.slice(0, -3)}${(0xa00 + number).toString(16)}`,
    status: group.status,
    epoch: group.epoch,
    rate_per_s: Math.floor(rate_per_s / count) + (number < rate_per_s % count ? 1 : 0),
    wanted_per_s:
      count > 1 ? Math.floor((rate_per_s / count) * (number === 2 ? 1.4 : 0.3 + 0.08 * (number % 7))) : null,
    hourly_micros: Math.ceil(group.price.hourly_micros / count),
    replicas: Array.from({ length: replication_degree }, (_server, position) =>
      server(((number + position) % 5) + 1, roleAt(position, replication_degree), true),
    ),
    learners: [],
    relocation: null,
    in_use: true,
  }))
  const answer: GroupPartitions = { key_hash: 1, layout: count > 1 ? 1 : 0, is_changing: false, items }
  return HttpResponse.json(answer)
})

const resizeGroup = http.patch('/v1/groups/:id', async ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const mock = groupById(params.id)
  if (!mock) return notFound('group')
  const { partitions: wanted, ...changes } = (await request.json()) as Resize
  const sla = { ...mock.group.sla, ...changes } as ObservedSla
  const { refusal: unfit } = quoteOf(sla)
  if (unfit) return problem('admission_refused', unfit.message, { refusal: unfit })
  mock.group = {
    ...mock.group,
    sla,
    price: priceOf(sla),
    promise: promiseOf(sla),
    partitions: wanted ?? mock.group.partitions ?? 1,
    epoch: mock.group.epoch + 1,
  }
  persist()
  return HttpResponse.json(observed(mock), { headers: { etag: '"3"' } })
})

export const groups = [
  quotes,
  partitions,
  resizeGroup,
  listGroups,
  createGroup,
  getGroup,
  deleteGroup,
  resetGroup,
  costs,
  placement,
  events,
]
