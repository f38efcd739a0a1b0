import { http, HttpResponse } from 'msw'
import { database } from '../db'
import { problem } from '../reply'
import { statusOf, STORY_KEY, type Story } from '../status'

/** The public status: no session is asked for. The story `error` is a fault of the service. */
const status = http.get('/v1/status', () => {
  const story = globalThis.sessionStorage?.getItem(STORY_KEY) ?? 'calm'
  if (story === 'error') return problem('internal', 'Repeat it. If the error persists, report the request id.')
  const told = statusOf(story as Story, Date.now())
  return HttpResponse.json({ ...told, incidents: [...database().incidents, ...told.incidents] })
})

export const statuses = [status]
