import type { Incident } from '@/api'
import { monthName } from '@/format/time'
import { CLAUSE_NAMES, CLAUSE_TOKENS, MEASURED, shareOfMonth } from './clauses'

const WIDTH = 1_000
const ROW_HEIGHT = 16
/** Least width of an incident, so that one of a minute is visible. */
const WIDTH_MIN = 3

interface Props {
  month: string
  incidents: Incident[]
  nowMs: number
}

/** The month as a line for each measured or breached clause, with its incidents marked, and as far as it has come. */
export function MonthStrip({ month, incidents, nowMs }: Props) {
  const [year = 1970, number = 1] = month.split('-').map(Number)
  const days = new Date(Date.UTC(year, number, 0)).getUTCDate()
  const breached = incidents.map((each) => each.clause).filter((clause) => !MEASURED.includes(clause))
  const rows = [...MEASURED, ...new Set(breached)]
  const at = (iso: string) => shareOfMonth(month, Date.parse(iso)) * WIDTH
  const passed = shareOfMonth(month, nowMs)
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
                <rect width={WIDTH} height={ROW_HEIGHT} fill="var(--sunken)" />
                <rect width={passed * WIDTH} height={ROW_HEIGHT} fill="var(--line)" />
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
        <div aria-hidden className="nums relative flex justify-between text-xs text-ink-3">
          <span>1</span>
          {passed < 1 && <Today share={passed} />}
          <span>{days}</span>
        </div>
      </div>
    </figure>
  )
}

/** Below the end of what has passed, and within the strip. */
function Today({ share }: { share: number }) {
  const left = `clamp(2.25rem, ${share * 100}%, calc(100% - 2.75rem))`
  return (
    <span className="absolute -translate-x-1/2 font-medium text-ink-2" style={{ left }}>
      Today
    </span>
  )
}
