import { http, HttpResponse } from 'msw'
import type { Quota, QuotaRequest } from '@/api'
import { database, persist } from '../db'
import { refuseStranger } from '../reply'

/** The quotas of the one organization that the mock service has. */
export function quotasNow(): Quota[] {
  const { projects, groups, keys, quotaLimits, quotaRequests } = database()
  const sum = (of: (group: (typeof groups)[number]['group']) => number) =>
    groups.reduce((all, { group }) => all + of(group), 0)
  const quota = (code: string, description: string, usual: number, used: number, unit: string): Quota => ({
    ...{ code, description, used, unit },
    limit: quotaLimits[code] ?? usual,
    is_default: !(code in quotaLimits),
    requested: quotaRequests[code] ?? null,
  })
  return [
    quota('projects', 'Projects', 20, projects.length, 'project'),
    quota('groups_per_project', 'Groups of one project (the fullest is shown)', 5, groups.length, 'group'),
    quota('keys_per_project', 'API keys of one project (the fullest is shown)', 100, keys.length, 'key'),
    quota('total_rate_per_s', 'Reserved appends per second, all groups', 1e7, sum(perSecond), 'append/s'),
    quota('total_read_rate_per_s', 'Reserved reads per second, all groups', 1e7, sum(readsPerSecond), 'read/s'),
  ]
}

type Reserved = { sla: { rate_per_s: number; read_rate_per_s?: number } }
const perSecond = ({ sla }: Reserved) => sla.rate_per_s
const readsPerSecond = ({ sla }: Reserved) => sla.read_rate_per_s ?? 0

const answer = () => HttpResponse.json({ items: quotasNow() })

export const quotas = [
  http.get('/v1/openapi.json', async () =>
    HttpResponse.json((await import('../../../sdk/contract/openapi.json')).default),
  ),
  http.get('/v1/quotas', ({ request }) => refuseStranger(request) ?? answer()),
  http.put('/v1/quotas/:quota/request', async ({ request, params }) => {
    const refusal = refuseStranger(request)
    if (refusal) return refusal
    database().quotaRequests[String(params.quota)] = ((await request.json()) as QuotaRequest).wanted
    persist()
    return answer()
  }),
  http.delete('/v1/quotas/:quota/request', ({ request, params }) => {
    const refusal = refuseStranger(request)
    if (refusal) return refusal
    delete database().quotaRequests[String(params.quota)]
    persist()
    return answer()
  }),
]
