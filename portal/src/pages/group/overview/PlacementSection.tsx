import { useQuery } from '@tanstack/react-query'
import { placementQuery, type Placement, type Relocation, type Replica } from '@/api'
import { word } from '@/format/words'
import { LoadFailed } from '@/ui/Notice'
import { Loading, Section, Skeleton } from '@/ui/Surface'
import { Ring } from './Ring'

export function PlacementSection({ groupId, flowing }: { groupId: string; flowing: boolean }) {
  const placement = useQuery(placementQuery(groupId))
  return (
    <Section
      title="Ring"
      description="Appends enter at the head and go down the chain; the tail’s acknowledgement closes the ring."
    >
      {placement.isPending && (
        <Loading label="Loading placement">
          <Skeleton className="mx-auto size-56 rounded-full" />
        </Loading>
      )}
      {placement.error && !placement.data && (
        <LoadFailed what="the placement" error={placement.error} retry={() => void placement.refetch()} />
      )}
      {placement.data && <Placed placement={placement.data} flowing={flowing} />}
    </Section>
  )
}

function Placed({ placement, flowing }: { placement: Placement; flowing: boolean }) {
  if (placement.replicas.length === 0) {
    return (
      <p className="py-10 text-center text-sm text-ink-3">The replicas are being placed. This takes a second or two.</p>
    )
  }
  return (
    <>
      <Ring placement={placement} flowing={flowing} />
      <table className="mt-4 w-full text-sm">
        <caption className="sr-only">Replicas in chain order</caption>
        <thead className="sr-only">
          <tr>
            <th scope="col">Server</th>
            <th scope="col">Role</th>
            <th scope="col">Address</th>
            <th scope="col">State</th>
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {[...placement.replicas, ...placement.learners].map((replica) => (
            <ReplicaRow key={`${replica.role}-${replica.server_id}`} replica={replica} />
          ))}
        </tbody>
      </table>
      {placement.relocation && <Moves relocation={placement.relocation} />}
    </>
  )
}

const CAUSES: Record<string, string> = {
  resize: 'its servers lack room for its new SLA',
  demand: 'it wants more than its servers have room for',
  capacity: 'a server can do less than it promised',
  operator: 'an operator asked for it',
}

/** The moves that are still to come. The group has all its replicas meanwhile. */
function Moves({ relocation }: { relocation: Relocation }) {
  const left = relocation.moves.length
  const title = left === 0 ? 'Moves wait for room' : left === 1 ? 'A replica moves' : `${left} replicas move`
  return (
    <p className="mt-4 rounded-lg bg-sunken px-3 py-2 text-[13px] text-ink-2" data-testid="relocation">
      <span className="font-medium text-ink">{title}</span>: {CAUSES[relocation.cause] ?? relocation.cause}. No replica
      leaves before its replacement has caught up, and appends go on.
    </p>
  )
}

function ReplicaRow({ replica }: { replica: Replica }) {
  const learning = replica.role === 'learner'
  return (
    <tr>
      <th scope="row" className="py-2 pr-3 text-left font-medium">
        {replica.server_name}
      </th>
      <td className="py-2 pr-3 text-ink-2">{word(replica.role)}</td>
      <td className="hidden py-2 pr-3 font-mono text-[13px] text-ink-3 sm:table-cell">{replica.address}</td>
      <td className="py-2 text-right">
        <span className={replica.alive ? (learning ? 'text-info-text' : 'text-accent-text') : 'text-danger-text'}>
          {replica.alive ? (learning ? 'Catching up' : 'Alive') : 'Dead'}
        </span>
      </td>
    </tr>
  )
}
