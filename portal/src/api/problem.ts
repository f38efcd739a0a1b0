import type { AnyProblem, Problem } from './types'

/**
 * An answer of the API that is not a success, as RFC 9457 describes it, or the lack of any answer.
 *
 * `code` is stable and is what pages decide on; `detail` is written for people and is shown as it is.
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

/** Codes that the portal itself gives when there was no usable answer. */
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

/** The problem of any thrown value; what is not a problem is a fault of the portal and says so. */
export function problemOf(error: unknown): AnyProblem {
  if (error instanceof ProblemError) return error.problem
  return {
    type: 'about:blank',
    title: 'The portal met an error of its own',
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
