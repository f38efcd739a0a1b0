import { useQuery, type UseQueryResult } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { quoteQuery, type Quote, type Sla } from '@/api'

/** Pause in typing before a quote: long enough to skip intermediate digits, short enough to feel immediate. */
const DEBOUNCE_MS = 220

/**
 * The quote of the SLA after a short pause in typing. `settled` is false while the shown quote is of an earlier SLA.
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
