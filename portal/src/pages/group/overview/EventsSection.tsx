import { useInfiniteQuery } from '@tanstack/react-query'
import { eventsQuery, type GroupEvent } from '@/api'
import { Button } from '@/ui/Button'
import { LoadFailed } from '@/ui/Notice'
import { Loading, Section, Skeleton } from '@/ui/Surface'
import { Ago } from '@/ui/Time'

const COLOURS: Record<string, string> = {
  active: 'bg-accent',
  degraded: 'bg-warn',
  paused: 'bg-danger',
  lost: 'bg-danger',
  provisioning: 'bg-info',
}

/** The group's events, newest first. */
export function EventsSection({ groupId }: { groupId: string }) {
  const events = useInfiniteQuery(eventsQuery(groupId))
  const items = events.data?.pages.flatMap((page) => page.items) ?? []
  return (
    <Section title="Events">
      {events.isPending && (
        <Loading label="Loading events">
          <div className="space-y-4">
            <Skeleton />
            <Skeleton className="h-4 w-2/3" />
            <Skeleton className="h-4 w-3/4" />
          </div>
        </Loading>
      )}
      {events.error && !events.data && (
        <LoadFailed what="the events" error={events.error} retry={() => void events.refetch()} />
      )}
      {events.data && items.length === 0 && (
        <p className="text-sm text-ink-3">
          Nothing has happened yet. Reconfigurations and failures will be listed here.
        </p>
      )}
      <ol className="relative space-y-4">
        {items.map((event) => (
          <Item key={event.id} event={event} />
        ))}
      </ol>
      {events.hasNextPage && (
        <Button
          variant="quiet"
          size="small"
          className="mt-4 -ml-3"
          busy={events.isFetchingNextPage}
          onClick={() => void events.fetchNextPage()}
        >
          Show older
        </Button>
      )}
    </Section>
  )
}

function Item({ event }: { event: GroupEvent }) {
  return (
    <li className="flex gap-3 text-sm">
      <span
        aria-hidden
        className={`mt-1.5 size-2 shrink-0 rounded-full ${COLOURS[event.status ?? ''] ?? 'bg-line-strong'}`}
      />
      <div className="min-w-0 flex-1">
        <p className="leading-snug">{event.message}</p>
        <p className="nums mt-0.5 text-[13px] text-ink-3">
          <Ago at={event.at} />
          {event.epoch !== null && `, epoch ${event.epoch}`}
        </p>
      </div>
    </li>
  )
}
