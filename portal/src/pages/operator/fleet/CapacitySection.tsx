import { useQuery } from '@tanstack/react-query'
import { capacityQuery } from '@/api'
import { percent } from '@/format/quantity'
import { LoadFailed } from '@/ui/Notice'
import { Loading, Section, Skeleton } from '@/ui/Surface'
import { ResourceBar } from './ResourceBar'
import { RESOURCES, scarcest } from './resources'

/** The whole fleet: how much is promised, and what will lack first. */
export function CapacitySection() {
  const found = useQuery(capacityQuery)
  if (found.isPending)
    return (
      <Loading label="Loading the capacity">
        <Skeleton className="h-36 w-full rounded-2xl" />
      </Loading>
    )
  if (!found.data) return <LoadFailed what="the capacity" error={found.error} retry={() => void found.refetch()} />
  const fleet = found.data
  const scarce = scarcest(fleet)
  return (
    <Section
      title="Promised of what may be promised"
      description={
        scarce
          ? `${scarce.resource.label} is the scarcest, with ${percent(1 - Math.min(1, scarce.part), 0)} free. ${percent(fleet.safety_factor, 0)} of the nominal capacity may be promised.`
          : 'No server says what it has.'
      }
    >
      <dl className="grid gap-x-8 gap-y-5 sm:grid-cols-2 lg:grid-cols-5">
        {RESOURCES.map((resource) => (
          <div key={resource.name}>
            <dt className="text-[13px] text-ink-3">{resource.label}</dt>
            <dd className="mt-1">
              <ResourceBar resource={resource} use={fleet} amounts />
            </dd>
          </div>
        ))}
      </dl>
      {fleet.profile_provisional && (
        <p className="mt-5 text-[13px] text-ink-3">
          The cost profile {fleet.profile_version} was measured elsewhere: measure one on this fleet (make profile).
        </p>
      )}
    </Section>
  )
}
