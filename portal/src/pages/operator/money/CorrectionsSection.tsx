import { useInfiniteQuery } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { correctionsQuery, type Correction } from '@/api'
import { count } from '@/format/quantity'
import { Button } from '@/ui/Button'
import { TextField } from '@/ui/Field'
import { Listing } from '@/ui/Listing'
import { Section } from '@/ui/Surface'
import { Ago, Minute } from '@/ui/Time'
import { CorrectionForm } from './CorrectionForm'

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Corrections of one group's use and SLA. Credits follow from them by themselves. */
export function CorrectionsSection() {
  const [typed, setTyped] = useState('')
  const [groupId, setGroupId] = useState('')
  const [isWrong, setIsWrong] = useState(false)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const id = typed.trim().toLowerCase()
    setIsWrong(!ID.test(id))
    if (ID.test(id)) setGroupId(id)
  }
  return (
    <Section
      title="Corrections"
      description="Of a group’s use or SLA. Credits and credit notes follow by themselves, and the customer sees the reason."
    >
      <form noValidate onSubmit={submit} className="flex items-end gap-2">
        <div className="min-w-0 flex-1">
          <TextField
            label="Id of the group"
            autoComplete="off"
            spellCheck={false}
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
            error={isWrong ? 'An id, as on the group’s settings page.' : undefined}
          />
        </div>
        <Button type="submit" variant="secondary" className="mb-1.5">
          Show
        </Button>
      </form>
      {groupId && <OfGroup key={groupId} groupId={groupId} />}
    </Section>
  )
}

function OfGroup({ groupId }: { groupId: string }) {
  const found = useInfiniteQuery(correctionsQuery(groupId))
  return (
    <div className="mt-5 border-t border-line pt-5">
      <Listing
        what="the corrections"
        query={found}
        more="Earlier corrections"
        empty={<p className="text-sm text-ink-3">Nothing was corrected yet.</p>}
      >
        {(rows) => (
          <ul aria-label="Corrections" className="divide-y divide-line text-sm">
            {rows.map((row) => (
              <li key={row.id} className="py-2.5">
                <p>
                  <Amount correction={row} />
                </p>
                <p className="mt-0.5 text-[13px] break-words text-ink-3">
                  {row.reason} — {row.author}, <Ago at={row.created_at} />
                </p>
              </li>
            ))}
          </ul>
        )}
      </Listing>
      {found.data && <CorrectionForm groupId={groupId} />}
    </div>
  )
}

function Amount({ correction: { kind, quantity, day, start, end } }: { correction: Correction }) {
  const what = kind.replaceAll('_', ' ')
  if (quantity !== null)
    return (
      <span className="nums">
        {quantity > 0 ? '+' : '−'}
        {count(Math.abs(quantity))} {what} of {day}
      </span>
    )
  return (
    <span className="nums">
      {what}, {start && <Minute at={start} />} to {end && <Minute at={end} />}
    </span>
  )
}
