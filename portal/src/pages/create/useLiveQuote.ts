import { useQuery, type UseQueryResult } from '@tanstack/react-query'
import { ProblemError, quoteQuery, type Quote, type Refusal, type Sla } from '@/api'
import { useRested } from '@/ui/rested'

/**
 * The quote of the SLA after a short pause in typing. `settled` is false while the shown quote is of an earlier SLA.
 */
export function useLiveQuote(sla: Sla | null): { quote: UseQueryResult<Quote>; settled: boolean } {
  const rested = useRested(sla)
  const quote = useQuery(quoteQuery(rested))
  return {
    quote,
    settled: JSON.stringify(rested) === JSON.stringify(sla) && !quote.isPlaceholderData && !quote.isFetching,
  }
}

/** The refusal in the answer to a creation or a resize, if it is one. */
export function refusalOf(error: unknown): Refusal | null {
  return error instanceof ProblemError && error.code === 'admission_refused' ? (error.problem.refusal ?? null) : null
}
