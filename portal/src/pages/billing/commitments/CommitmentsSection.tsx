import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { commitmentsQuery, type Commitment, type Commitments } from '@/api'
import { moneyShort } from '@/format/money'
import { day } from '@/format/time'
import { Button } from '@/ui/Button'
import { LoadFailed } from '@/ui/Notice'
import { Badge } from '@/ui/StatusBadge'
import { Loading, Section, Skeleton } from '@/ui/Surface'
import { useNow } from '@/ui/Time'
import { CommitmentDialog } from './CommitmentDialog'
import { owed, stateOf, termText } from './commitments'

/** The organization's commitments, and the way to make one. */
export function CommitmentsSection() {
  const found = useQuery(commitmentsQuery)
  if (found.data) return <Shown found={found.data} />
  if (found.error) return <LoadFailed what="the commitments" error={found.error} retry={() => void found.refetch()} />
  return (
    <Loading label="Loading the commitments">
      <Skeleton className="h-36 w-full rounded-2xl" />
    </Loading>
  )
}

function Shown({ found }: { found: Commitments }) {
  const [committing, setCommitting] = useState(false)
  const best = Math.max(0, ...found.offers.map(({ discount_percent }) => discount_percent))
  const longest = Math.max(0, ...found.offers.map(({ months }) => months))
  return (
    <Section
      title="Commitments"
      description={`Commit to an amount of reservations each month, and pay up to ${best} % less for it.`}
      aside={
        <Button variant="secondary" size="small" onClick={() => setCommitting(true)}>
          Commit
        </Button>
      }
    >
      {found.items.length === 0 ? (
        <p className="text-sm text-ink-2">
          Nothing is committed: each reservation costs its list price, and ends when its group does. Commitments hold
          for up to {termText(longest)}.
        </p>
      ) : (
        <ul className="divide-y divide-line">
          {found.items.map((each) => (
            <Row key={each.id} commitment={each} currency={found.currency} />
          ))}
        </ul>
      )}
      <CommitmentDialog found={found} open={committing} onClose={() => setCommitting(false)} />
    </Section>
  )
}

const TONES = { 'to come': 'busy', running: 'good', ended: 'plain' } as const

function Row({ commitment, currency }: { commitment: Commitment; currency: string }) {
  const state = stateOf(commitment, new Date(useNow()))
  return (
    <li className="flex flex-wrap items-center justify-between gap-x-6 gap-y-1 py-3 first:pt-0 last:pb-0">
      <div>
        <p className="nums text-sm font-medium">
          {moneyShort(commitment.monthly_micros, currency)} a month, {commitment.discount_percent} % off
        </p>
        <p className="nums mt-0.5 text-[13px] text-ink-3">
          {day(commitment.start)} to {day(commitment.end)} ·{' '}
          {moneyShort(owed(commitment.monthly_micros, commitment.discount_percent), currency)} owed each month
        </p>
      </div>
      <Badge tone={TONES[state]}>{state}</Badge>
    </li>
  )
}
