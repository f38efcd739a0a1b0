import { http, HttpResponse } from 'msw'
import { database } from '../db'
import type { MockGroup } from '../records'
import { groupById, notFound, page, refuseStranger } from '../reply'
import { minutesMissed, reportOf } from '../sla'
import { minutesOf, sampleAt, silentSample } from '../traffic'

const SAMPLE_MS = 1_000

const live = http.get('/v1/groups/:id/live', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  if (!groupById(params.id)) return notFound('group')
  const encoder = new TextEncoder()
  let timer: ReturnType<typeof setInterval> | undefined
  const stop = () => clearInterval(timer)
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      const send = () => {
        const mock = groupById(params.id)
        if (mock) controller.enqueue(encoder.encode(`event: sample\ndata: ${JSON.stringify(sampleNow(mock))}\n\n`))
      }
      controller.enqueue(encoder.encode(': hello\n\n'))
      send()
      timer = setInterval(send, SAMPLE_MS)
      request.signal.addEventListener('abort', stop)
    },
    cancel: stop,
  })
  return new HttpResponse(stream, { headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store' } })
})

function sampleNow({ group, traffic }: MockGroup) {
  const now = Date.now()
  return traffic && traffic.since_ms <= now ? sampleAt(traffic, now, group.epoch) : silentSample(now, group.epoch)
}

const metrics = http.get('/v1/groups/:id/metrics', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const mock = groupById(params.id)
  if (!mock) return notFound('group')
  const minutes = Number(new URL(request.url).searchParams.get('minutes') ?? 60)
  return HttpResponse.json({
    group_id: mock.group.id,
    minutes: mock.traffic ? minutesOf(mock.traffic, Date.now(), minutes) : [],
  })
})

const sla = http.get('/v1/groups/:id/sla', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const mock = groupById(params.id)
  if (!mock) return notFound('group')
  const month = new URL(request.url).searchParams.get('month') ?? new Date().toISOString().slice(0, 7)
  return HttpResponse.json(reportOf(mock, month, Date.now()))
})

const badMinutes = http.get('/v1/groups/:id/sla/bad-minutes', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const mock = groupById(params.id)
  if (!mock) return notFound('group')
  const month = new URL(request.url).searchParams.get('month') ?? new Date().toISOString().slice(0, 7)
  return page(minutesMissed(reportOf(mock, month, Date.now()).incidents), request)
})

const glance = http.get('/v1/projects/:id/glance', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const items = database()
    .groups.filter(({ group }) => group.project_id === params.id)
    .map(({ group, traffic }) => ({
      group_id: group.id,
      appends_per_s: traffic?.mean_per_s ?? 0,
      bad_minutes: group.status === 'degraded' ? 17 : 0,
    }))
  return HttpResponse.json({ minute: new Date().toISOString(), items })
})

export const telemetry = [live, glance, metrics, sla, badMinutes]
