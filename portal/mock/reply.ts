import { HttpResponse } from 'msw'
import type { Problem } from '@/api'
import { database } from './db'
import type { MockGroup } from './records'

const TITLES: Partial<Record<Problem['code'], [number, string]>> = {
  validation_failed: [422, 'The request is not valid'],
  not_authenticated: [401, 'Not authenticated'],
  credentials_invalid: [401, 'Wrong e-mail, password or key'],
  second_factor_wrong: [401, 'The code is wrong'],
  confirmation_required: [403, 'Confirm that it is you'],
  link_invalid: [409, 'The link does not work any more'],
  last_owner: [409, 'An organization has an owner'],
  member_already: [409, 'The person is a member already'],
  csrf_token_invalid: [403, 'The CSRF token is missing or wrong'],
  permission_denied: [403, 'Not permitted'],
  quota_exceeded: [403, 'A quota is used up'],
  not_found: [404, 'Not found'],
  email_taken: [409, 'There is an account with this e-mail'],
  name_taken: [409, 'The name is taken'],
  nothing_due: [409, 'Nothing is due'],
  group_not_lost: [409, 'The group is not lost'],
  admission_refused: [409, 'The fleet cannot promise this SLA'],
  coordinator_unavailable: [503, 'The coordinator does not answer'],
  internal: [500, 'Internal error'],
}

export function problem(code: Problem['code'], detail: string, more: Partial<Problem> = {}) {
  const [status, title] = TITLES[code] ?? [500, code]
  const body: Problem = {
    type: `/errors/${code}`,
    title,
    status,
    detail,
    code,
    request_id: 'req_mock000000000001',
    retryable: status >= 500,
    errors: [],
    ...more,
  }
  return HttpResponse.json(body as never, { status, headers: { 'content-type': 'application/problem+json' } })
}

export function invalid(field: string, message: string) {
  return problem('validation_failed', message, { errors: [{ field, message }] })
}

export function page<T>(items: T[], request: Request) {
  const query = new URL(request.url).searchParams
  const limit = Number(query.get('limit') ?? 50)
  const from = Number(query.get('cursor') ?? 0)
  const next = from + limit < items.length ? String(from + limit) : null
  return HttpResponse.json({ items: items.slice(from, from + limit), next_cursor: next } as never)
}

/** Null if the request may proceed, else the refusal. Changes need the CSRF token, as in the real service. */
export function refuseStranger(request: Request) {
  const { session } = database()
  if (!session) return problem('not_authenticated', 'Log in to go on.')
  if (request.method !== 'GET' && request.headers.get('x-csrf-token') !== session.csrf_token)
    return problem('csrf_token_invalid', 'Send X-CSRF-Token with the token that GET /v1/me gives.')
  return null
}

/**
 * Sentinel names: each makes every form of the portal fail in its own way.
 * `fail-503`: the coordinator is away; `fail-500`: a fault of the service; `fail-offline`: no answer at all.
 */
export function sentinel(name: string) {
  if (name === 'fail-503')
    return problem('coordinator_unavailable', 'Repeat in a moment. Existing groups go on serving.')
  if (name === 'fail-500') return problem('internal', 'Repeat it. If the error persists, report the request id.')
  return name === 'fail-offline' ? HttpResponse.error() : null
}

export function groupById(id: unknown): MockGroup | undefined {
  return database().groups.find((each) => each.group.id === id)
}
export const notFound = (what: string) => problem('not_found', `There is no such ${what} here.`)
