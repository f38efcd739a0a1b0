import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { badMinutesQuery, type BadMinute } from '@/api'
import { count, latency } from '@/format/quantity'
import { minuteUtc } from '@/format/time'
import { Button } from '@/ui/Button'
import { LoadFailed } from '@/ui/Notice'
import { Loading, Skeleton } from '@/ui/Surface'
import { scrollable } from '@/ui/scrollable'
import { CLAUSE_NAMES, CLAUSE_TOKENS } from './clauses'

/** Measurements of each minute that missed a clause, read when somebody asks for them. */
export function BadMinutes({ groupId, month }: { groupId: string; month: string }) {
  const [isShown, setShown] = useState(false)
  return isShown ? (
    <Minutes groupId={groupId} month={month} />
  ) : (
    <Button variant="quiet" size="small" className="mt-2 -ml-3" onClick={() => setShown(true)}>
      Show what was measured in each minute
    </Button>
  )
}

function Minutes({ groupId, month }: { groupId: string; month: string }) {
  const minutes = useInfiniteQuery(badMinutesQuery(groupId, month))
  const items = minutes.data?.pages.flatMap((page) => page.items) ?? []
  return (
    <div {...scrollable('Minutes that missed a clause')} className="mt-4 relative overflow-x-auto">
      {minutes.isPending && (
        <Loading label="Loading minutes">
          <div className="space-y-3">
            <Skeleton />
            <Skeleton className="h-4 w-2/3" />
          </div>
        </Loading>
      )}
      {minutes.error && !minutes.data && (
        <LoadFailed what="the minutes" error={minutes.error} retry={() => void minutes.refetch()} />
      )}
      {items.length > 0 && (
        <table className="nums w-full min-w-136 text-sm">
          <caption className="sr-only">Minutes that missed a clause</caption>
          <thead>
            <tr className="border-b border-line text-left text-[13px] text-ink-3">
              <Head>Minute</Head>
              <Head>Missed</Head>
              <Head right>Accepted appends for</Head>
              <Head right>Throttled within the reservation</Head>
              <Head right>p99</Head>
            </tr>
          </thead>
          <tbody className="divide-y divide-line">
            {items.map((minute) => (
              <Row key={minute.at} minute={minute} />
            ))}
          </tbody>
        </table>
      )}
      {minutes.hasNextPage && (
        <Button
          variant="quiet"
          size="small"
          className="mt-3 -ml-3"
          busy={minutes.isFetchingNextPage}
          onClick={() => void minutes.fetchNextPage()}
        >
          Show later
        </Button>
      )}
    </div>
  )
}

function Head({ children, right = false }: { children: string; right?: boolean }) {
  return (
    <th scope="col" className={`py-2 pr-4 font-normal last:pr-0 ${right ? 'text-right' : ''}`}>
      {children}
    </th>
  )
}

function Row({ minute }: { minute: BadMinute }) {
  const seconds = (ms: number) => (ms / 1_000).toFixed(ms % 1_000 === 0 ? 0 : 1)
  return (
    <tr>
      <td className="py-2 pr-4 whitespace-nowrap">
        <time dateTime={minute.at}>{minuteUtc(minute.at)}</time>
      </td>
      <td className="py-2 pr-4">
        <span className="flex flex-wrap gap-x-3">
          {minute.missed.map((clause) => (
            <span key={clause} className="inline-flex items-center gap-1.5">
              <span
                aria-hidden
                className="size-2 rounded-full"
                style={{ background: `var(--${CLAUSE_TOKENS[clause]})` }}
              />
              {CLAUSE_NAMES[clause]}
            </span>
          ))}
        </span>
      </td>
      <td className="py-2 pr-4 text-right">
        {minute.declared !== null
          ? 'Declared bad'
          : minute.measured
            ? `${seconds(minute.active_ms)} of ${seconds(minute.elapsed_ms)} s`
            : 'No telemetry'}
        {minute.unreachable_ms > 0 && (
          <span className="block text-[13px] text-ink-3">not reached for {seconds(minute.unreachable_ms)} s</span>
        )}
      </td>
      <td className="py-2 pr-4 text-right">
        {count(minute.throttled_within_sla_entries)} of {count(minute.within_sla_entries)}
        {minute.late_read_entries > 0 && (
          <span className="block text-[13px] text-ink-3">
            {count(minute.late_read_entries)} of {count(minute.owed_read_entries)} reads late
          </span>
        )}
      </td>
      <td className="py-2 text-right">{minute.p99_us === null ? '–' : latency(minute.p99_us)}</td>
    </tr>
  )
}
