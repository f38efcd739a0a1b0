import { Link } from '@tanstack/react-router'
import { ArrowRight, Check } from 'lucide-react'
import { useState } from 'react'
import { count, latency, rate } from '@/format/quantity'
import { useLive } from '@/live/LiveProvider'
import { buttonClass } from '@/ui/Button'
import { Card } from '@/ui/Surface'

/** Waits for the group's first committed entry, and shows its arrival. */
export function FirstAppend(props: { projectId: string; groupId: string; isNew: boolean }) {
  const { projectId, groupId, isNew } = props
  const { samples, state } = useLive()
  const last = samples.at(-1)
  const entries = last?.committed_entries ?? 0
  const [sawNone, setSawNone] = useState(isNew)
  if (last && entries === 0 && !sawNone) setSawNone(true)
  return (
    <Card>
      <div role="status">
        {last && entries > 0 ? (
          <div className="flex items-start gap-4">
            <span
              aria-hidden
              className="flex size-10 shrink-0 animate-[settle_500ms_ease-out] items-center justify-center rounded-full bg-accent text-accent-ink"
            >
              <Check className="size-5" strokeWidth={2.5} />
            </span>
            <div>
              <p className="text-[15px] font-semibold">
                {sawNone ? 'Your first entry is committed' : 'Entries are arriving'}
              </p>
              <p className="mt-0.5 text-sm text-ink-2">
                {sawNone
                  ? 'Ordered, replicated and acknowledged. Your log is live.'
                  : 'This group has a client already.'}
              </p>
            </div>
          </div>
        ) : (
          <div className="flex items-start gap-4">
            <span aria-hidden className="flex size-10 shrink-0 items-center justify-center">
              <span className="size-3 animate-[breathe_1.4s_ease-in-out_infinite] rounded-full bg-accent" />
            </span>
            <div>
              <p className="text-[15px] font-semibold">Waiting for the first append</p>
              <p className="mt-0.5 text-sm text-ink-2">
                {state === 'open' || state === 'connecting'
                  ? 'Run the program above; this changes the moment it arrives.'
                  : 'The live connection is down and is being renewed.'}
              </p>
            </div>
          </div>
        )}
      </div>
      {last && entries > 0 && (
        <div className="mt-5 flex flex-wrap items-end justify-between gap-5 border-t border-line pt-5">
          <dl className="nums flex flex-wrap gap-x-8 gap-y-3 text-sm">
            <Fact term="Entries">{count(entries)}</Fact>
            <Fact term="Now">{rate(last.append_per_s)}</Fact>
            <Fact term="p99">{last.append_per_s > 0 ? latency(last.p99_us) : '–'}</Fact>
          </dl>
          <Link to="/projects/$projectId/groups/$groupId" params={{ projectId, groupId }} className={buttonClass()}>
            See it live
            <ArrowRight aria-hidden className="size-4" />
          </Link>
        </div>
      )}
    </Card>
  )
}

function Fact({ term, children }: { term: string; children: string }) {
  return (
    <div>
      <dt className="text-[13px] text-ink-3">{term}</dt>
      <dd className="font-semibold">{children}</dd>
    </div>
  )
}
