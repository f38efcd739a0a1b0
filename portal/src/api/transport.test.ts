import { http, HttpResponse } from 'msw'
import { describe, expect, it, vi } from 'vitest'
import { server } from '#mock/server'
import { ACCOUNT } from '#mock/people'
import { api, ProblemError, problemOf, setSignedOutHandler, UNREACHABLE } from '@/api'

const PROJECT = '01990000-0000-7000-8000-000000000001'

/** Answers creations of keys from a list, and records each request's headers. */
function answering(...answers: (() => Response)[]) {
  const seen: { key: string | null; csrf: string | null }[] = []
  server.use(
    http.post('*/v1/projects/:id/keys', ({ request }) => {
      seen.push({ key: request.headers.get('idempotency-key'), csrf: request.headers.get('x-csrf-token') })
      return (answers[seen.length - 1] ?? answers.at(-1))?.() ?? HttpResponse.error()
    }),
  )
  return seen
}
const made = () => HttpResponse.json({ id: 'k', secret: 's' }, { status: 201 })
const problem = (status: number, code: string) => () =>
  HttpResponse.json({ status, code, title: code, detail: code }, { status })

describe('what goes with every call', () => {
  it('sends the CSRF token that logging in gave', async () => {
    await api.logIn(ACCOUNT)
    const seen = answering(made)
    await api.createKey({ owner: PROJECT, name: 'one' })
    expect(seen[0]?.csrf).toMatch(/^csrf-/)
  })

  it.each([
    ['no answer at all', () => HttpResponse.error()],
    ['a fault of the service', problem(503, 'coordinator_unavailable')],
    ['an earlier attempt still running', problem(409, 'idempotency_in_progress')],
  ])('repeats with the same idempotency key after %s', async (_case, failure) => {
    const seen = answering(failure, made)
    await expect(api.createKey({ owner: PROJECT, name: 'again' })).rejects.toBeInstanceOf(ProblemError)
    await api.createKey({ owner: PROJECT, name: 'again' })
    expect(seen[0]?.key).toBeTruthy()
    expect(seen[1]?.key).toBe(seen[0]?.key)
  })

  it.each([
    ['success', made],
    ['a refusal', problem(403, 'quota_exceeded')],
  ])('takes a new idempotency key after %s', async (_case, answer) => {
    const seen = answering(answer, made)
    await api.createKey({ owner: PROJECT, name: 'next' }).catch(() => undefined)
    await api.createKey({ owner: PROJECT, name: 'next' })
    expect(seen[1]?.key).not.toBe(seen[0]?.key)
  })

  it('takes another idempotency key for another body', async () => {
    const seen = answering(() => HttpResponse.error(), made)
    await expect(api.createKey({ owner: PROJECT, name: 'a' })).rejects.toBeInstanceOf(ProblemError)
    await api.createKey({ owner: PROJECT, name: 'b' })
    expect(seen[1]?.key).not.toBe(seen[0]?.key)
  })
})

describe('what went wrong', () => {
  it('is the problem that the service gave', async () => {
    const error = await api.logIn({ email: ACCOUNT.email, password: 'wrong' }).catch((each: unknown) => each)
    expect(problemOf(error)).toMatchObject({ status: 401, code: 'credentials_invalid' })
  })

  it('is said plainly when there was no answer', async () => {
    answering(() => HttpResponse.error())
    const error = await api.createKey({ owner: PROJECT, name: 'x' }).catch((each: unknown) => each)
    expect(problemOf(error).code).toBe(UNREACHABLE)
  })

  it('is said plainly when something else answered', async () => {
    answering(() => HttpResponse.html('<h1>Bad gateway</h1>', { status: 502 }))
    const error = await api.createKey({ owner: PROJECT, name: 'x' }).catch((each: unknown) => each)
    expect(problemOf(error)).toMatchObject({ status: 502, code: 'unreadable_answer' })
  })

  it('ends the session on a 401, but not for a wrong password', async () => {
    const signedOut = vi.fn<() => void>()
    setSignedOutHandler(signedOut)
    await api.logIn({ email: ACCOUNT.email, password: 'wrong' }).catch(() => undefined)
    expect(signedOut).not.toHaveBeenCalled()
    await api.listQuotas(new AbortController().signal).catch(() => undefined)
    expect(signedOut).toHaveBeenCalledOnce()
  })
})
