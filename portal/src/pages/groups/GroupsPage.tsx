import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Plus, Search } from 'lucide-react'
import { glanceQuery, groupsQuery, type Group } from '@/api'
import { moneyShort } from '@/format/money'
import { useMay } from '@/session'
import { buttonClass } from '@/ui/Button'
import { INPUT } from '@/ui/Field'
import { Mark } from '@/ui/Logo'
import { LoadFailed } from '@/ui/Notice'
import { Card, EmptyState, Loading, PageHeader, Skeleton } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { GroupsTable } from './GroupsTable'

const route = getRouteApi('/app/projects/$projectId/groups')
/** A shorter list needs no search box. */
const SEARCH_FROM = 4

export function GroupsPage() {
  usePageTitle('Groups')
  const { projectId } = route.useParams()
  const groups = useQuery(groupsQuery(projectId))
  const mayManage = useMay('manage')
  return (
    <>
      <PageHeader
        title="Groups"
        description={
          groups.data?.length ? (
            <Summary groups={groups.data} />
          ) : (
            'A group is one ordered, durable log with its own SLA.'
          )
        }
        actions={groups.data?.length && mayManage ? <NewGroup projectId={projectId} /> : undefined}
      />
      {groups.isPending && <GroupsLoading />}
      {groups.error && !groups.data && (
        <LoadFailed what="your groups" error={groups.error} retry={() => void groups.refetch()} />
      )}
      {groups.data?.length === 0 && <NoGroups projectId={projectId} />}
      {groups.data && groups.data.length > 0 && <Found groups={groups.data} />}
    </>
  )
}

function Summary({ groups }: { groups: Group[] }) {
  const monthly = groups.reduce((sum, group) => sum + group.price.monthly_micros, 0)
  return (
    <span className="nums">
      {groups.length === 1 ? '1 group' : `${groups.length} groups`},{' '}
      {moneyShort(monthly, groups[0]?.price.currency ?? 'USD')} per month reserved
    </span>
  )
}

function NewGroup({ projectId }: { projectId: string }) {
  return (
    <Link to="/projects/$projectId/groups/new" params={{ projectId }} className={buttonClass()}>
      <Plus aria-hidden className="size-4" />
      New group
    </Link>
  )
}

function Found({ groups }: { groups: Group[] }) {
  const { q } = route.useSearch()
  const navigate = route.useNavigate()
  const { projectId } = route.useParams()
  const glances = useQuery(glanceQuery(projectId))
  const shown = q ? groups.filter((group) => group.name.toLowerCase().includes(q.toLowerCase())) : groups
  return (
    <>
      {(groups.length >= SEARCH_FROM || q) && (
        <div className="relative mb-4 max-w-xs">
          <Search aria-hidden className="pointer-events-none absolute top-3 left-3 size-4 text-ink-3" />
          <input
            type="search"
            aria-label="Find a group by name"
            placeholder="Find a group"
            value={q ?? ''}
            onChange={(event) =>
              void navigate({ search: (old) => ({ ...old, q: event.target.value || undefined }), replace: true })
            }
            className={`${INPUT} pl-9`}
          />
        </div>
      )}
      {shown.length > 0 ? (
        <GroupsTable groups={shown.map((group) => ({ ...group, glance: glances.data?.get(group.id) }))} />
      ) : (
        <Card className="px-6 py-12 text-center text-sm text-ink-2">
          No group is called “{q}”.{' '}
          <Link
            to="."
            search={(old) => ({ ...old, q: undefined })}
            className="font-medium text-accent-text underline underline-offset-4"
          >
            Show all
          </Link>
        </Card>
      )}
    </>
  )
}

function NoGroups({ projectId }: { projectId: string }) {
  if (!useMay('manage'))
    return (
      <EmptyState title="No groups yet" picture={<Mark className="size-10 text-line-strong" />}>
        Owners, admins and developers of the organization create them.
      </EmptyState>
    )
  return (
    <EmptyState
      title="Your first group"
      picture={<Mark className="size-10 text-line-strong" />}
      action={<NewGroup projectId={projectId} />}
    >
      Say how durable it is, how many replicas it has, and how many requests a second it must take. You see the price,
      and whether we can promise it, while you type.
    </EmptyState>
  )
}

function GroupsLoading() {
  return (
    <Loading label="Loading groups">
      <Card className="divide-y divide-line">
        {[0, 1, 2].map((row) => (
          <div key={row} className="flex items-center gap-8 px-5 py-5">
            <Skeleton className="h-4 w-40" />
            <Skeleton className="h-5 w-20 rounded-full" />
            <Skeleton className="ml-auto hidden h-4 w-32 sm:block" />
          </div>
        ))}
      </Card>
    </Loading>
  )
}
