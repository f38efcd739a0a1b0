import { http, HttpResponse } from 'msw'
import { problem } from '../reply'
import { statusOf, STORY_KEY, type Story } from '../status'

/** The public status: no session is asked for. The story `error` is a fault of the service. */
const status = http.get('/v1/status', () => {
  const story = globalThis.sessionStorage?.getItem(STORY_KEY) ?? 'calm'
  if (story === 'error') return problem('internal', 'Repeat it. If the error persists, report the request id.')
  return HttpResponse.json(statusOf(story as Story, Date.now()))
})

export const statuses = [status]
