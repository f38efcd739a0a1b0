import { http, HttpResponse } from 'msw'
import { database, persist } from '../db'
import { invalid, refuseStranger } from '../reply'

const GRACE_MS = 14 * 86_400_000

function shown() {
  const { organization, closing_at } = database()
  const closes_at = closing_at && new Date(Date.parse(closing_at) + GRACE_MS).toISOString()
  const never = { suspended_at: null, suspension_reason: null, closed_at: null, erased_after: null }
  return { ...organization, closing_at, closes_at, ...never }
}

function change(closing_at: string | null) {
  const db = database()
  db.closing_at = closing_at
  db.organization.standing = closing_at ? 'closing' : 'active'
  for (const { group } of db.groups) group.access = closing_at ? 'suspended' : 'full'
  persist()
  return shown()
}

export const organization = [
  http.get('/v1/organization', ({ request }) => refuseStranger(request) ?? HttpResponse.json(shown())),
  http.post('/v1/organization/closure', async ({ request }) => {
    const refusal = refuseStranger(request)
    if (refusal) return refusal
    const { name } = (await request.json()) as { name: string }
    if (name !== database().organization.name) return invalid('name', 'Is not the organization’s name.')
    return HttpResponse.json(change(new Date().toISOString()), { status: 202 })
  }),
  http.delete('/v1/organization/closure', ({ request }) => refuseStranger(request) ?? HttpResponse.json(change(null))),
  http.get('/v1/organization/export', ({ request }) => {
    const rows = database().projects.map((row) => JSON.stringify({ table: 'projects', row }))
    const end = JSON.stringify({ end: { lines: rows.length, sha256: '0'.repeat(64) } })
    const headers = { 'content-type': 'application/jsonl' }
    return refuseStranger(request) ?? new HttpResponse([...rows, end, ''].join('\n'), { headers })
  }),
]
