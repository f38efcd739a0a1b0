import type { Clause } from '@/api'

export const CLAUSE_NAMES: Record<Clause['clause'], string> = {
  availability: 'Availability',
  throughput: 'Throughput',
  latency: 'Latency',
}

/** Colours of the clauses in charts of incidents, as tokens. */
export const CLAUSE_TOKENS: Record<Clause['clause'], string> = {
  availability: 'danger',
  throughput: 'warn',
  latency: 'info',
}

/**
 * The used share of the error budget: 1 is the whole budget, more is a missed clause. Null while nothing was counted. A
 * target of 100 % has no budget: any miss uses it up.
 */
export function budgetUsed(clause: Pick<Clause, 'target' | 'attained'>): number | null {
  if (clause.attained === null) return null
  const missed = 1 - clause.attained
  const allowed = 1 - clause.target
  if (allowed <= 0) return missed > 0 ? Number.POSITIVE_INFINITY : 0
  return missed / allowed
}
