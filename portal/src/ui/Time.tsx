import { useEffect, useState } from 'react'
import { ago, minute, minuteUtc, moment } from '@/format/time'

const TICK_MS = 10_000

/** The current time, updated every ten seconds, which is enough for "3 min ago". */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS)
    return () => clearInterval(timer)
  }, [])
  return now
}

export function Ago({ at }: { at: string }) {
  const now = useNow()
  return (
    <time dateTime={at} title={moment(at)} className="nums whitespace-nowrap">
      {ago(at, now)}
    </time>
  )
}

/** A minute in the reader's zone, with the time in UTC as its title. */
export function Minute({ at }: { at: string }) {
  return (
    <time dateTime={at} title={minuteUtc(at)} className="nums whitespace-nowrap">
      {minute(at)}
    </time>
  )
}
