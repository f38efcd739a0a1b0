import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { api, entriesQuery, type LogPage } from '@/api'
import { LoadFailed } from '@/ui/Notice'
import { EmptyState, Loading, Skeleton } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { useGroup } from '../GroupPage'
import { EntryList } from './EntryList'
import { Following } from './Following'
import { LogControls } from './LogControls'
import { Paging } from './Paging'
import { placeOf, type Search } from './place'

const route = getRouteApi('/app/projects/$projectId/groups/$groupId/log')

/** The log's entries, for people who look into it. */
export function LogTab() {
  const group = useGroup()
  usePageTitle(`Log of ${group.name}`)
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const [followsFrom, setFollowsFrom] = useState<number | null>(null)
  const place = placeOf(search)
  const view = search.view ?? 'text'
  const found = useQuery({ ...entriesQuery(group.id, place), enabled: followsFrom === null })
  const go = (change: Search) => {
    if (change.partition !== search.partition) setFollowsFrom(null)
    void navigate({ search: change, replace: true })
  }
  return (
    <>
      <LogControls
        search={search}
        partitions={group.partitions ?? 1}
        onChange={go}
        onJump={(change) => {
          setFollowsFrom(null)
          go(change)
        }}
      />
      {found.isPending && (
        <Loading label="Loading entries">
          <Skeleton className="h-80 w-full rounded-2xl" />
        </Loading>
      )}
      {found.error && !found.data && (
        <LoadFailed what="the log" error={found.error} retry={() => void found.refetch()} />
      )}
      {found.data && (
        <Paging
          page={found.data}
          follows={followsFrom !== null}
          onGo={(offset) => go({ ...search, at: undefined, offset })}
          onFollow={(on) => setFollowsFrom(on ? found.data.end_offset : null)}
        />
      )}
      {followsFrom !== null && (
        <Following groupId={group.id} partition={place.partition} from={followsFrom} view={view} />
      )}
      {found.data && followsFrom === null && found.data.items.length > 0 && (
        <EntryList
          entries={found.data.items}
          view={view}
          fileOf={(offset) => api.entryFile(group.id, offset, place.partition)}
        />
      )}
      {found.data && followsFrom === null && found.data.items.length === 0 && <Empty page={found.data} />}
      <p className="mt-4 text-[13px] text-ink-3">Looking counts as reads of the group, also in its usage.</p>
    </>
  )
}

function Empty({ page }: { page: LogPage }) {
  if (page.end_offset === 0)
    return <EmptyState title="The log is empty">Its first entry has the offset 0. “Connect” shows how.</EmptyState>
  return (
    <EmptyState title="No entry is there yet">
      The log ends before this place. “Newest” shows the latest entries, and “Follow” those to come.
    </EmptyState>
  )
}
