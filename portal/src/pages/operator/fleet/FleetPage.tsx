import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { serversQuery, type Server } from '@/api'
import { LoadFailed } from '@/ui/Notice'
import { EmptyState, Loading, PageHeader, Skeleton } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { CapacitySection } from './CapacitySection'
import { JoinTokens } from './JoinTokens'
import { ServerDialog } from './ServerDialog'
import { ServersTable, type Deed } from './ServersTable'

export function FleetPage() {
  usePageTitle('Fleet')
  const found = useQuery(serversQuery)
  const [chosen, setChosen] = useState<{ server: Server; deed: Deed } | null>(null)
  return (
    <>
      <PageHeader title="Fleet" description="Servers, what is promised of them, and how to add and remove one." />
      <div className="space-y-6">
        <CapacitySection />
        {found.isPending && (
          <Loading label="Loading servers">
            <Skeleton className="h-64 w-full rounded-2xl" />
          </Loading>
        )}
        {found.error && !found.data && (
          <LoadFailed what="the servers" error={found.error} retry={() => void found.refetch()} />
        )}
        {found.data?.length === 0 && (
          <EmptyState title="No server has joined yet">Make a join token below, and start a server with it.</EmptyState>
        )}
        {found.data && found.data.length > 0 && (
          <ServersTable servers={found.data} onDeed={(server, deed) => setChosen({ server, deed })} />
        )}
        <JoinTokens />
      </div>
      <ServerDialog chosen={chosen} onClose={() => setChosen(null)} />
    </>
  )
}
