import { http, HttpResponse } from 'msw'
import type { GuaranteedGroup, GuaranteeTerms, ProjectGuarantee } from '@/api'
import { database, persist } from '../db'
import { notFound, problem, refuseStranger } from '../reply'

const PRICE_PER_MILLION_MICROS = 150_000
const HOURS_PER_MONTH = 730
const FITS = 2_000_000

function priceOf(tokens: number) {
  const hourly_micros = Math.ceil((tokens * PRICE_PER_MILLION_MICROS) / 1_000_000)
  return { hourly_micros, monthly_micros: hourly_micros * HOURS_PER_MONTH, currency: 'USD' }
}

/** Every third group is busy, and wants half of what is shared. */
function groupsOf(projectId: string, shared: number): GuaranteedGroup[] {
  const own = database().groups.filter(({ group }) => group.project_id === projectId && group.status !== 'lost')
  return own.map(({ group }, index) => {
    const tokens = tokensOf(group.sla.durability, group.sla.request_size_bytes, group.sla.replication_degree)
    const all = Math.floor(shared / tokens)
    const wanted = index % 3 === 0 ? Math.floor(all * 0.62) : Math.floor(all * 0.04)
    const share = index % 3 === 0 ? Math.floor(all * 0.4) : Math.floor(all * 0.06)
    return {
      group_id: group.id,
      name: group.name,
      tokens_per_append: tokens,
      own_tokens_per_s: Math.ceil(group.sla.rate_per_s * tokens),
      own_appends_per_s: group.sla.rate_per_s,
      most_appends_per_s: group.sla.rate_per_s + all,
      wanted_per_s: wanted,
      share_per_s: share,
    }
  })
}

function tokensOf(durability: string, bytes: number, degree: number): number {
  return durability === 'persistent' ? degree * 20 : Math.round(degree * (1.3 + bytes / 150) * 10) / 10
}

function shown(projectId: string): ProjectGuarantee {
  const kept = database().guarantees[projectId]
  const shared = kept?.terms?.shared_tokens_per_s ?? 0
  const groups = groupsOf(projectId, shared)
  return {
    project_id: projectId,
    shared_tokens_per_s: shared,
    max_tokens_per_s: kept?.terms?.max_tokens_per_s ?? null,
    policy: kept?.terms?.policy ?? { name: 'drf', groups: [] },
    revision: kept?.revision ?? 0,
    since: kept?.terms ? kept.since : null,
    is_settled: true,
    own_tokens_per_s: groups.reduce((sum, group) => sum + group.own_tokens_per_s, 0),
    price: priceOf(shared),
    groups,
  }
}

/** The project, or the refusal of a request to it. */
function refusalOf(request: Request, id: unknown) {
  const project = database().projects.find((each) => each.id === id)
  const refused = refuseStranger(request)
  if (refused) return refused
  if (!project) return notFound('project')
  if (project.name === 'unreachable')
    return problem('coordinator_unavailable', 'The service cannot be read right now. Existing groups go on serving.')
  return null
}

const get = http.get(
  '/v1/projects/:id/guarantee',
  ({ request, params }) => refusalOf(request, params.id) ?? HttpResponse.json(shown(String(params.id))),
)

const put = http.put('/v1/projects/:id/guarantee', async ({ request, params }) => {
  const refusal = refusalOf(request, params.id)
  if (refusal) return refusal
  const terms = (await request.json()) as GuaranteeTerms
  if (terms.shared_tokens_per_s > FITS)
    return problem('guarantee_refused', `s1 has too little CPU free. ${FITS} fit now.`)
  const db = database()
  const id = String(params.id)
  db.guarantees[id] = { terms, revision: (db.guarantees[id]?.revision ?? 0) + 1, since: new Date().toISOString() }
  persist()
  return HttpResponse.json(shown(id))
})

const takeBack = http.delete('/v1/projects/:id/guarantee', ({ request, params }) => {
  const refusal = refusalOf(request, params.id)
  if (refusal) return refusal
  const db = database()
  const kept = db.guarantees[String(params.id)]
  if (kept) db.guarantees[String(params.id)] = { ...kept, terms: null, revision: kept.revision + 1 }
  persist()
  return new HttpResponse(null, { status: 204 })
})

const quote = http.post('/v1/projects/:id/guarantee/quote', async ({ request, params }) => {
  const refusal = refusalOf(request, params.id)
  if (refusal) return refusal
  const { shared_tokens_per_s: tokens } = (await request.json()) as GuaranteeTerms
  const refused = tokens > FITS
  return HttpResponse.json({
    admissible: !refused,
    price: priceOf(tokens),
    refusal: refused
      ? {
          scarce_resource: 'cpu',
          message: `Each server of the project's groups reserves the shared tokens, and s1 has too little CPU free for ${tokens} tokens/s. ${FITS} fit now.`,
          largest_shared_tokens_per_s: FITS,
        }
      : null,
  })
})

export const guarantees = [get, put, takeBack, quote]
