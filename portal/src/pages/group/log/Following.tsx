import { useEffect, useState } from 'react'
import { api, type LogEntry } from '@/api'
import { count } from '@/format/quantity'
import { ProblemNotice } from '@/ui/Notice'
import { EmptyState } from '@/ui/Surface'
import { EntryList } from './EntryList'
import type { View } from './payload'

/** Entries shown: the newest of those that came. */
const KEPT = 500
const WAIT_S = 8
const AGAIN_MS = 2_000

interface Props {
  groupId: string
  partition: number
  /** The offset of the first entry to come. */
  from: number
  view: View
}

/** Entries as they come, the newest first. */
export function Following({ groupId, partition, from, view }: Props) {
  const [entries, setEntries] = useState<LogEntry[]>([])
  const [came, setCame] = useState(0)
  const [error, setError] = useState<unknown>(null)
  useEffect(() => {
    const ended = new AbortController()
    void follow(ended.signal)
    return () => ended.abort()

    async function follow(signal: AbortSignal) {
      for (let offset = from; !signal.aborted;) {
        try {
          // oxlint-disable-next-line no-await-in-loop -- one page follows the other
          const page = await api.listEntries(groupId, { partition, offset, wait_s: WAIT_S, limit: 200 }, signal)
          offset = page.next_offset
          setError(null)
          setCame((before) => before + page.items.length)
          setEntries((before) => [...page.items.toReversed(), ...before].slice(0, KEPT))
        } catch (cause) {
          if (signal.aborted) return
          setError(cause)
          // oxlint-disable-next-line no-await-in-loop -- a pause before the next attempt
          await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
        }
      }
    }
  }, [groupId, partition, from])
  return (
    <>
      <p role="status" className="nums mb-3 text-sm text-ink-2">
        {count(came)} {came === 1 ? 'entry has' : 'entries have'} come, the newest first
      </p>
      {error !== null && (
        <div className="mb-4">
          <ProblemNotice error={error} />
        </div>
      )}
      {entries.length > 0 ? (
        <EntryList entries={entries} view={view} fileOf={(offset) => api.entryFile(groupId, offset, partition)} />
      ) : (
        <EmptyState title="Waiting for the next entry">It is shown here as soon as it is committed.</EmptyState>
      )}
    </>
  )
}
