import type { Incident } from '@/api'
import { monthName } from '@/format/time'
import { CLAUSE_NAMES, CLAUSE_TOKENS, MEASURED } from './clauses'

const WIDTH = 1_000
const ROW_HEIGHT = 16
/** Least width of an incident, so that one of a minute is visible. */
const WIDTH_MIN = 3

/** The month as a line for each measured or breached clause, with its incidents marked. */
export function MonthStrip({ month, incidents }: { month: string; incidents: Incident[] }) {
  const startMs = Date.parse(`${month}-01T00:00:00Z`)
  const [year = 1970, number = 1] = month.split('-').map(Number)
  const days = (Date.UTC(year, number, 1) - startMs) / 86_400_000
  const breached = incidents.map((each) => each.clause).filter((clause) => !MEASURED.includes(clause))
  const rows = [...MEASURED, ...new Set(breached)]
  const at = (iso: string) => ((Date.parse(iso) - startMs) / (days * 86_400_000)) * WIDTH
  return (
    <figure className="mb-6">
      <div className="grid grid-cols-[6rem_1fr] items-center gap-x-4 gap-y-1.5">
        {rows.map((clause) => {
          const own = incidents.filter((each) => each.clause === clause)
          return (
            <div key={clause} className="contents">
              <span className="text-[13px] text-ink-2">{CLAUSE_NAMES[clause]}</span>
              <svg
                viewBox={`0 0 ${WIDTH} ${ROW_HEIGHT}`}
                preserveAspectRatio="none"
                role="img"
                aria-label={`${CLAUSE_NAMES[clause]}: ${own.length} incidents in ${monthName(month)}`}
                className="h-4 w-full"
              >
                <rect width={WIDTH} height={ROW_HEIGHT} rx="3" fill="var(--sunken)" />
                {own.map((each) => (
                  <rect
                    key={each.start}
                    x={at(each.start)}
                    width={Math.max(WIDTH_MIN, at(each.end) - at(each.start))}
                    height={ROW_HEIGHT}
                    fill={`var(--${CLAUSE_TOKENS[clause]})`}
                  />
                ))}
              </svg>
            </div>
          )
        })}
        <span />
        <div aria-hidden className="nums flex justify-between text-xs text-ink-3">
          <span>1</span>
          <span>{Math.round(days / 2)}</span>
          <span>{days}</span>
        </div>
      </div>
    </figure>
  )
}
