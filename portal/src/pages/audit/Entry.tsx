import { ChevronRight, KeyRound, UserRound } from 'lucide-react'
import type { AuditEvent } from '@/api'
import { Ago } from '@/ui/Time'
import { deviceOf } from '../account/device'
import { deedOf } from './deeds'

/** One change; its particulars unfold. */
export function Entry({ event }: { event: AuditEvent }) {
  const Icon = event.actor.kind === 'key' ? KeyRound : UserRound
  return (
    <li>
      <details className="group">
        <summary className="flex cursor-pointer list-none items-center gap-3 px-5 py-3.5 text-sm transition-colors hover:bg-hover [&::-webkit-details-marker]:hidden">
          <Icon aria-hidden className="size-4 shrink-0 text-ink-3" />
          <span className="min-w-0 flex-1">
            <span className="font-medium break-words">{event.actor.name}</span>{' '}
            <span className="text-ink-2">{deedOf(event)}</span>
          </span>
          <span className="shrink-0 text-[13px] text-ink-3">
            <Ago at={event.at} />
          </span>
          <ChevronRight aria-hidden className="size-4 shrink-0 text-ink-3 transition-transform group-open:rotate-90" />
        </summary>
        <dl className="grid gap-x-6 gap-y-1.5 bg-sunken px-5 py-4 text-[13px] sm:grid-cols-[9rem_minmax(0,1fr)]">
          <Fact term="Number">{event.seq}</Fact>
          <Fact term="Call">
            <code className="font-mono">
              {event.operation} {event.subject}
            </code>
          </Fact>
          <Fact term="From">
            {event.address}, {deviceOf(event.user_agent)}
          </Fact>
          <Fact term="Sent">
            <code className="font-mono whitespace-pre-wrap">
              {event.request === null ? 'nothing' : JSON.stringify(event.request, null, 1)}
            </code>
          </Fact>
          <Fact term="Request">
            <code className="font-mono">{event.request_id}</code>
          </Fact>
          <Fact term="Hash">
            <code className="font-mono">{event.hash}</code>
          </Fact>
        </dl>
      </details>
    </li>
  )
}

function Fact({ term, children }: { term: string; children: React.ReactNode }) {
  return (
    <>
      <dt className="text-ink-3">{term}</dt>
      <dd className="mb-1.5 break-all text-ink-2 sm:mb-0">{children}</dd>
    </>
  )
}
