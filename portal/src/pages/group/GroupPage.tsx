import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, Outlet } from '@tanstack/react-router'
import { ChevronLeft } from 'lucide-react'
import { groupQuery, type Group } from '@/api'
import { LiveProvider } from '@/live/LiveProvider'
import { bytes, rate } from '@/format/quantity'
import { replicas, word } from '@/format/words'
import { buttonClass } from '@/ui/Button'
import { LoadFailed, Notice } from '@/ui/Notice'
import { GroupBadge, statusMeaning } from '@/ui/StatusBadge'
import { Loading, Skeleton } from '@/ui/Surface'
import { GroupTabs } from './GroupTabs'
import { ResetGroup } from './ResetGroup'

const route = getRouteApi('/app/projects/$projectId/groups/$groupId')
const WORTH_SAYING: Record<string, 'warn' | 'danger' | 'info'> = {
  degraded: 'warn',
  paused: 'danger',
  lost: 'danger',
  deleting: 'info',
  deleted: 'info',
}

/** A group's frame: name, state, tabs. The tab itself is the child route. */
export function GroupPage() {
  const { groupId, projectId } = route.useParams()
  const group = useQuery(groupQuery(groupId))
  return (
    <>
      <Link
        to="/projects/$projectId/groups"
        params={{ projectId }}
        className="mb-4 -ml-1 inline-flex items-center gap-1 rounded text-[13px] text-ink-2 hover:text-ink"
      >
        <ChevronLeft aria-hidden className="size-4" />
        Groups
      </Link>
      {group.isPending && <HeaderLoading />}
      {group.error && !group.data && (
        <LoadFailed what="this group" error={group.error} retry={() => void group.refetch()} />
      )}
      {group.data && (
        <LiveProvider key={groupId} groupId={groupId}>
          <Header group={group.data} />
          <GroupTabs projectId={projectId} groupId={groupId} />
          <Outlet />
        </LiveProvider>
      )}
    </>
  )
}

/** The group of the page. Only for tabs, which are shown after it is loaded. */
export function useGroup(): Group {
  const { groupId } = route.useParams()
  const { data } = useQuery(groupQuery(groupId))
  if (!data) throw new Error('a tab was shown before its group was loaded')
  return data
}

function Header({ group }: { group: Group }) {
  const { sla } = group
  const tone = WORTH_SAYING[group.status]
  return (
    <header>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <h1 className="min-w-0 text-[26px] leading-tight font-semibold break-words">{group.name}</h1>
        <GroupBadge group={group} />
      </div>
      <p className="nums mt-1.5 text-sm text-ink-2">
        {word(sla.durability)}, {replicas(sla.replication_degree)}, {rate(sla.rate_per_s)} of{' '}
        {bytes(sla.request_size_bytes)}
        {(group.partitions ?? 1) > 1 && `, ${group.partitions} partitions`}
      </p>
      {group.partition_of && (
        <p className="mt-1 text-sm text-ink-2">
          Partition {group.partition} of{' '}
          <Link
            to="/projects/$projectId/groups/$groupId/partitions"
            params={{ projectId: group.project_id, groupId: group.partition_of }}
            className="font-medium text-ink underline decoration-line-strong underline-offset-4 hover:decoration-current"
          >
            a group with several
          </Link>
          . It changes with that group.
        </p>
      )}
      {group.access !== 'full' && (
        <div className="mt-5">
          <LimitedAccess access={group.access} />
        </div>
      )}
      {group.resizing && (
        <div className="mt-5">
          <Notice tone="info" title="A resize is under way">
            {rate(group.resizing.sla.rate_per_s)} of {bytes(group.resizing.sla.request_size_bytes)} begin once replicas
            have moved to servers with room for them. The present SLA and price hold until then.
          </Notice>
        </div>
      )}
      {tone && (
        <div className="mt-5">
          <Notice
            tone={tone}
            title={word(group.status)}
            action={group.status === 'lost' ? <ResetGroup group={group} /> : undefined}
          >
            {statusMeaning(group.status)}
          </Notice>
        </div>
      )}
    </header>
  )
}

function LimitedAccess({ access }: { access: 'reserved' | 'suspended' }) {
  return (
    <Notice
      tone={access === 'suspended' ? 'danger' : 'warn'}
      title={access === 'suspended' ? 'Suspended by a spend cap' : 'Throttled by a spend cap'}
      action={
        <Link to="/usage" className={buttonClass('secondary', 'small')}>
          See spend and budgets
        </Link>
      }
    >
      {statusMeaning(access)} It lasts until the month is over, or until somebody raises or removes the cap.
    </Notice>
  )
}

function HeaderLoading() {
  return (
    <Loading label="Loading group">
      <Skeleton className="h-8 w-56" />
      <Skeleton className="mt-3 h-4 w-80 max-w-full" />
      <Skeleton className="mt-8 h-64 w-full rounded-2xl" />
    </Loading>
  )
}
