import type { SlaReport } from '@/api'
import { minutesLong, minuteUtc } from '@/format/time'
import { Section } from '@/ui/Surface'
import { CLAUSE_NAMES } from './clauses'

/** Minutes that we declared bad ourselves, each with its reason. Most months have none. */
export function Corrections({ corrections }: { corrections: SlaReport['corrections'] }) {
  if (corrections.length === 0) return null
  return (
    <Section
      title="Corrections"
      description="Minutes that we declared bad, whatever was measured, and breaches that nothing measures."
    >
      <ol className="divide-y divide-line border-t border-line">
        {corrections.toReversed().map((each) => (
          <li key={`${each.created_at}-${each.start}`} className="py-3.5 text-sm">
            <p className="flex flex-wrap justify-between gap-x-6">
              <span>
                {each.breaches && <span className="text-ink-2">{CLAUSE_NAMES[each.breaches]}: </span>}
                {each.reason}
              </span>
              <span className="nums text-ink-2">
                {minutesLong((Date.parse(each.end) - Date.parse(each.start)) / 60_000)}
              </span>
            </p>
            <p className="nums mt-0.5 text-[13px] text-ink-3">
              <time dateTime={each.start}>{minuteUtc(each.start)}</time>
            </p>
          </li>
        ))}
      </ol>
    </Section>
  )
}
