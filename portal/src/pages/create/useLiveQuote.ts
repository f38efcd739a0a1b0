import { useQuery, type UseQueryResult } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { quoteQuery, type Quote, type Sla } from '@/api'

/** Long enough to skip the digits in between, short enough to feel like an answer. */
const DEBOUNCE_MS = 220

/**
 * The quote of the SLA as it stands after a short rest from typing. `settled` is false while what is shown
 * belongs to an earlier SLA.
 */
export function useLiveQuote(sla: Sla | null): { quote: UseQueryResult<Quote>; settled: boolean } {
  const text = JSON.stringify(sla)
  const [rested, setRested] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setRested(text), DEBOUNCE_MS)
    return () => clearTimeout(timer)
  }, [text])
  const quote = useQuery(quoteQuery(JSON.parse(rested) as Sla | null))
  return { quote, settled: rested === text && !quote.isPlaceholderData && !quote.isFetching }
}
