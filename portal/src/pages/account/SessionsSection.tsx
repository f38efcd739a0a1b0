import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api, keys, sessionsQuery, type Session } from '@/api'
import { Button } from '@/ui/Button'
import { LoadFailed, ProblemNotice } from '@/ui/Notice'
import { Badge } from '@/ui/StatusBadge'
import { Loading, Section, Skeleton } from '@/ui/Surface'
import { Ago } from '@/ui/Time'
import { deviceOf } from './device'

export function SessionsSection() {
  const queries = useQueryClient()
  const found = useQuery(sessionsQuery)
  const refresh = () => queries.invalidateQueries({ queryKey: keys.sessions })
  const ending = useMutation({ mutationFn: api.endSession, onSuccess: refresh })
  const endingOthers = useMutation({ mutationFn: api.endOtherSessions, onSuccess: refresh })
  const others = found.data?.items.filter((session) => !session.is_current) ?? []
  return (
    <Section
      title="Sessions"
      description="Where you are logged in. A session that is not used for a day ends by itself."
      aside={
        others.length > 0 && (
          <Button variant="secondary" size="small" busy={endingOthers.isPending} onClick={() => endingOthers.mutate()}>
            End all others
          </Button>
        )
      }
    >
      {found.isPending && (
        <Loading label="Loading sessions">
          <Skeleton className="h-16 w-full" />
        </Loading>
      )}
      {found.error && <LoadFailed what="your sessions" error={found.error} retry={() => void found.refetch()} />}
      {found.data && (
        <ul className="divide-y divide-line">
          {found.data.items.map((session) => (
            <Row
              key={session.id}
              session={session}
              busy={ending.isPending && ending.variables === session.id}
              onEnd={() => ending.mutate(session.id)}
            />
          ))}
        </ul>
      )}
      {(ending.error ?? endingOthers.error) && <ProblemNotice error={ending.error ?? endingOthers.error} />}
    </Section>
  )
}

function Row({ session, busy, onEnd }: { session: Session; busy: boolean; onEnd: () => void }) {
  return (
    <li className="flex items-center gap-4 py-3 first:pt-0 last:pb-0">
      <span className="min-w-0 flex-1">
        <span className="block truncate text-sm font-medium">{deviceOf(session.user_agent)}</span>
        <span className="block text-[13px] text-ink-3">
          {session.organization_name} · {session.address} · used <Ago at={session.last_seen_at} />
        </span>
      </span>
      {session.is_current ? (
        <Badge tone="good">This one</Badge>
      ) : (
        <Button
          variant="quiet"
          size="small"
          busy={busy}
          onClick={onEnd}
          aria-label={`End ${deviceOf(session.user_agent)}`}
        >
          End
        </Button>
      )}
    </li>
  )
}
