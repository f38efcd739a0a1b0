import { useQuery } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { statusQuery, type StatusIncident } from '@/api'
import { Button } from '@/ui/Button'
import { LoadFailed } from '@/ui/Notice'
import { Badge } from '@/ui/StatusBadge'
import { Card, EmptyState, Loading, PageHeader, Skeleton } from '@/ui/Surface'
import { Ago } from '@/ui/Time'
import { usePageTitle } from '@/ui/title'
import { IncidentDialog } from './IncidentDialog'

/** Incidents as customers see them on the status page. */
export function IncidentsPage() {
  usePageTitle('Incidents')
  const found = useQuery(statusQuery)
  const [writing, setWriting] = useState<StatusIncident | 'new' | null>(null)
  return (
    <>
      <PageHeader
        title="Incidents"
        description="What you write here is on the public status page at once, and in its feed."
        actions={
          <Button icon={<Plus aria-hidden className="size-4" />} onClick={() => setWriting('new')}>
            New incident
          </Button>
        }
      />
      {found.isPending && (
        <Loading label="Loading incidents">
          <Skeleton className="h-48 w-full rounded-2xl" />
        </Loading>
      )}
      {found.error && !found.data && (
        <LoadFailed what="the incidents" error={found.error} retry={() => void found.refetch()} />
      )}
      {found.data?.incidents.length === 0 && (
        <EmptyState title="No incidents">None in the last ninety days.</EmptyState>
      )}
      <ul className="space-y-4">
        {found.data?.incidents.map((incident) => (
          <li key={incident.id}>
            <Entry incident={incident} onUpdate={() => setWriting(incident)} />
          </li>
        ))}
      </ul>
      <IncidentDialog about={writing} onClose={() => setWriting(null)} />
    </>
  )
}

function Entry({ incident, onUpdate }: { incident: StatusIncident; onUpdate: () => void }) {
  const isOpen = incident.resolved_at === null
  const [latest] = incident.updates.toSorted((a, b) => b.at.localeCompare(a.at))
  return (
    <Card className="flex flex-wrap items-start gap-x-6 gap-y-3 p-5">
      <div className="min-w-0 flex-1">
        <h2 className="text-[15px] font-semibold break-words">{incident.title}</h2>
        <p className="mt-0.5 text-[13px] text-ink-3">
          {incident.components.map((each) => each.replaceAll('_', ' ')).join(', ')} in {incident.regions.join(', ')},{' '}
          since <Ago at={incident.opened_at} />
        </p>
        {latest && <p className="mt-2 text-sm break-words">{latest.message}</p>}
      </div>
      <Badge tone={!isOpen ? 'good' : incident.impact === 'outage' ? 'danger' : 'warn'}>
        {isOpen ? incident.phase : 'resolved'}
      </Badge>
      {isOpen && (
        <Button variant="secondary" size="small" aria-label={`Update ${incident.title}`} onClick={onUpdate}>
          Update
        </Button>
      )}
    </Card>
  )
}
