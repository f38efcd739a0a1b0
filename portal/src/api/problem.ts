import type { AnyProblem, Problem } from './types'

/**
 * An answer of the API that is not a success (RFC 9457), or the lack of any answer.
 *
 * Pages decide by `code`, which is stable. They show `detail`, which is written for people, as it is.
 */
export class ProblemError extends Error {
  readonly problem: AnyProblem
  constructor(problem: AnyProblem) {
    super(problem.detail || problem.title)
    this.name = 'ProblemError'
    this.problem = problem
  }
  get code(): string {
    return this.problem.code
  }
  get status(): number {
    return this.problem.status
  }
}

/** The portal's own codes for the lack of a usable answer. */
export const UNREACHABLE = 'unreachable'
export const UNREADABLE = 'unreadable_answer'

export function unreachable(): ProblemError {
  return new ProblemError({
    type: 'about:blank',
    title: 'No answer from the service',
    status: 0,
    detail: 'The service could not be reached. Check your connection; nothing that you entered is lost.',
    code: UNREACHABLE,
    request_id: '',
    retryable: true,
    errors: [],
  })
}

export function unreadable(status: number, requestId: string): ProblemError {
  return new ProblemError({
    type: 'about:blank',
    title: 'The service gave an answer that could not be read',
    status,
    detail: 'Something between you and the service answered in its place. Try again in a moment.',
    code: UNREADABLE,
    request_id: requestId,
    retryable: true,
    errors: [],
  })
}

export function isProblem(value: unknown): value is Problem {
  return typeof value === 'object' && value !== null && 'code' in value && 'status' in value
}

/** The problem of any thrown value. A value that is no problem becomes a fault of the portal. */
export function problemOf(error: unknown): AnyProblem {
  if (error instanceof ProblemError) return error.problem
  return {
    type: 'about:blank',
    title: 'The portal had an internal error',
    status: 0,
    detail: error instanceof Error ? error.message : String(error),
    code: 'portal_error',
    request_id: '',
    retryable: true,
    errors: [],
  }
}

/** The message for one field, matched by its last path segment, so `body.sla.rate_per_s` finds `rate_per_s`. */
export function fieldMessage(error: unknown, field: string): string | undefined {
  if (!(error instanceof ProblemError)) return undefined
  return error.problem.errors?.find((each) => each.field.split(/[./]/).at(-1) === field)?.message
}
