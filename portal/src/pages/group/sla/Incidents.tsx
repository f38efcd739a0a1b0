import type { Incident } from '@/api'
import { minutesLong, minuteUtc } from '@/format/time'
import { CLAUSE_NAMES, CLAUSE_TOKENS } from './clauses'

export function Incidents({ incidents }: { incidents: Incident[] }) {
  if (incidents.length === 0) return <p className="text-sm text-ink-3">No minute missed a clause in this month.</p>
  return (
    <ol className="divide-y divide-line border-t border-line">
      {incidents.toReversed().map((incident) => (
        <li key={`${incident.clause}-${incident.start}`} className="flex gap-3 py-3.5 text-sm">
          <span
            aria-hidden
            className="mt-1.5 size-2 shrink-0 rounded-full"
            style={{ background: `var(--${CLAUSE_TOKENS[incident.clause]})` }}
          />
          <div className="min-w-0 flex-1">
            <p className="flex flex-wrap justify-between gap-x-6">
              <span className="font-medium">{CLAUSE_NAMES[incident.clause]}</span>
              <span className="nums text-ink-2">{minutesLong(incident.minutes)}</span>
            </p>
            <p className="mt-0.5 text-ink-2">{incident.reason}</p>
            <p className="nums mt-0.5 text-[13px] text-ink-3">
              <time dateTime={incident.start}>{minuteUtc(incident.start)}</time>
            </p>
          </div>
        </li>
      ))}
    </ol>
  )
}
