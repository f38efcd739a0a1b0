import { isProblem, ProblemError, unreachable, unreadable } from './problem'

/**
 * The transport of every call to the API: the CSRF token, the idempotency key, errors as problems, and the callback for
 * an ended session.
 */
let csrfToken: string | null = null
let operatorToken: string | null = null
let viewToken: string | null = null
let onSignedOut: () => void = () => undefined
let confirmPerson: () => Promise<boolean> = () => Promise.resolve(false)

export function setCsrfToken(token: string | null): void {
  csrfToken = token
}

/** Operators' calls carry this token, and no session. */
export function setOperatorToken(token: string | null): void {
  operatorToken = token
}

/** An operator's look at an organization: calls carry this token, and no session. */
export function setViewToken(token: string | null): void {
  viewToken = token
}

/** Called for each call whose session has ended. */
export function setSignedOutHandler(handler: () => void): void {
  onSignedOut = handler
}

/** Asks who is there to confirm it, when the service wants that before a change. True: it was confirmed. */
export function setConfirmer(confirmer: () => Promise<boolean>): void {
  confirmPerson = confirmer
}

/** Calls whose repetition is harmless, so that they need no key. */
const DRY_RUNS = new Set(['/v1/quotes', '/v1/login', '/v1/logout', '/v1/me/confirm', '/v1/invitations/look'])
/** Codes of a session that has ended, or was never begun. Other 401s are about a password or code. */
const OPERATORS = '/v1/operator/'
const NO_SESSION = new Set(['session_expired', 'not_authenticated'])

/** Keys of POSTs with an unknown outcome. Sending the same body again reuses the key, so that it takes effect once. */
const unresolved = new Map<string, string>()
const UNRESOLVED_MAX = 32

async function fingerprint(request: Request, path: string): Promise<string> {
  const bytes = new TextEncoder().encode(`${path}\n${await request.clone().text()}`)
  if (!globalThis.crypto?.subtle) return String.fromCharCode(...bytes)
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** `randomUUID` exists on secure origins only, and a portal on a private address over HTTP needs keys too. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function keyFor(print: string): string {
  const known = unresolved.get(print)
  if (known) return known
  const key = randomKey()
  if (unresolved.size >= UNRESOLVED_MAX) unresolved.delete(unresolved.keys().next().value ?? '')
  unresolved.set(print, key)
  return key
}

/** Resolves with a successful response, or throws a {@link ProblemError}. An abort stays an abort. */
export async function portalFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const request = new Request(input, init)
  const path = new URL(request.url).pathname
  const writes = request.method !== 'GET'
  const isOperators = path.startsWith(OPERATORS)
  if (isOperators) request.headers.set('authorization', `Bearer ${operatorToken ?? ''}`)
  else if (viewToken) request.headers.set('authorization', `Bearer ${viewToken}`)
  else if (writes && csrfToken) request.headers.set('x-csrf-token', csrfToken)
  const print = request.method === 'POST' && !DRY_RUNS.has(path) ? await fingerprint(request, path) : null
  if (print) request.headers.set('idempotency-key', keyFor(print))

  const again = writes ? request.clone() : null
  let response: Response
  try {
    response = await fetch(request, { credentials: 'same-origin' })
  } catch (cause) {
    if (request.signal.aborted) throw cause
    throw unreachable()
  }
  if (response.ok) {
    if (print) unresolved.delete(print)
    return response
  }
  const error = await problemFrom(response)
  const settled = response.status < 500 && error.code !== 'idempotency_in_progress'
  if (print && settled) unresolved.delete(print)
  if (again && error.code === 'confirmation_required' && (await confirmPerson())) return portalFetch(again)
  if (!isOperators && NO_SESSION.has(error.code) && path !== '/v1/me') onSignedOut()
  throw error
}

async function problemFrom(response: Response): Promise<ProblemError> {
  const body: unknown = await response.json().catch(() => null)
  if (isProblem(body)) return new ProblemError(body)
  return unreadable(response.status, response.headers.get('x-request-id') ?? '')
}
