import { useEffect, useState } from 'react'

/** Pause in typing before a quote: long enough to skip intermediate digits, short enough to feel immediate. */
const DEBOUNCE_MS = 220

/** The value after a short pause in its changes. It is compared as JSON. */
export function useRested<T>(value: T): T {
  const text = JSON.stringify(value)
  const [rested, setRested] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setRested(text), DEBOUNCE_MS)
    return () => clearTimeout(timer)
  }, [text])
  return JSON.parse(rested) as T
}
