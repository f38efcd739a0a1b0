import { http, HttpResponse } from 'msw'
import { groupById, notFound, problem, refuseStranger } from '../reply'

const ENTRIES = 1_204
const SECOND_MS = 1_000

/** Entry n of every log: an event as JSON; each seventh one is no text. One a second. */
function entry(offset: number, nowMs: number) {
  const isBinary = offset % 7 === 3
  const text = JSON.stringify({ order: 4_000 + offset, state: offset % 2 ? 'paid' : 'placed', note: 'straße' })
  const bytes = isBinary ? new Uint8Array([0, 159, 146, 150, offset % 256]) : new TextEncoder().encode(text)
  return {
    offset,
    at: new Date(timeOf(offset, nowMs)).toISOString(),
    size_bytes: bytes.length,
    data: btoa(String.fromCharCode(...bytes)),
    is_cut: false,
  }
}

const timeOf = (offset: number, nowMs: number) => nowMs - (ENTRIES - offset) * SECOND_MS

export const logs = [
  http.get('/v1/groups/:id/entries', async ({ request, params }) => {
    const refusal = refuseStranger(request)
    if (refusal) return refusal
    const mock = groupById(params.id)
    if (!mock) return notFound('group')
    if (mock.group.status === 'lost') return problem('group_lost', 'Its log is lost.')
    const query = new URL(request.url).searchParams
    const now = Date.now()
    const limit = Number(query.get('limit') ?? 50)
    const waits = Number(query.get('wait_s') ?? 0) > 0
    const at = query.get('at')
    const end = mock.traffic ? ENTRIES : 0
    let from = Number(query.get('offset') ?? Math.max(0, end - limit))
    if (at) from = Math.max(0, Math.ceil(end - (now - Date.parse(at)) / SECOND_MS))
    // While somebody waits, one more entry comes each second.
    const last = waits && end > 0 ? from + 1 : Math.min(end, from + limit)
    if (waits) await new Promise((resolve) => setTimeout(resolve, SECOND_MS))
    const offsets = Array.from({ length: Math.max(0, last - from) }, (_, n) => from + n)
    const next = Math.max(Math.min(from, Math.max(end, last)), last)
    const items = offsets.map((offset) => entry(offset, now))
    return HttpResponse.json({ items, first_offset: 0, end_offset: Math.max(end, last), next_offset: next })
  }),
]
