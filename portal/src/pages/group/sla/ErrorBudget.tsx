import type { Clause } from '@/api'
import { count } from '@/format/quantity'
import { budgetAmount, budgetUsed, burnRate } from './clauses'

/** Beyond ten times the budget a percentage has no meaning for readers. */
const TIMES_OVER = 10

function usedText(used: number): string {
  if (!Number.isFinite(used)) return 'The budget allows no miss at all'
  if (used >= TIMES_OVER) return `Error budget exceeded ${count(used)} times over`
  return `${Math.round(used * 100)} % of the error budget used`
}

/** The month's error budget: its size, its used part and the speed of its use. */
export function ErrorBudget({ clause }: { clause: Clause }) {
  const used = budgetUsed(clause)
  if (used === null) return null
  const { unit, allowed, left, burn_rates: burn } = clause.error_budget
  const shown = Math.min(1, used)
  const colour = used > 1 ? 'bg-danger' : used > 0.75 ? 'bg-warn' : 'bg-accent'
  const amount = (value: number) => budgetAmount(unit, value)
  return (
    <div className="mt-4">
      <div
        role="meter"
        aria-label="Error budget used"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(shown * 100)}
        aria-valuetext={usedText(used)}
        className="h-1.5 overflow-hidden rounded-full bg-line"
      >
        <div className={`h-full rounded-full ${colour}`} style={{ width: `${shown * 100}%` }} />
      </div>
      <p className="nums mt-1.5 text-[13px] text-ink-3">
        {usedText(used)}
        <span className="block">
          {left >= 0 ? `${amount(left)} of ${amount(allowed)} left` : `${amount(-left)} above ${amount(allowed)}`}
        </span>
      </p>
      <p className="mt-4 text-[13px] font-medium">Burn rate</p>
      <dl className="nums mt-1 grid grid-cols-3 gap-3 text-[13px]">
        <Burn term="Last hour" rate={burn.hour} />
        <Burn term="6 hours" rate={burn.six_hours} />
        <Burn term="Month" rate={burn.month} />
      </dl>
    </div>
  )
}

function Burn({ term, rate }: { term: string; rate: number | null }) {
  return (
    <div>
      <dt className="text-ink-3">{term}</dt>
      <dd className={rate !== null && rate > 1 ? 'font-medium text-warn-text' : ''}>
        {rate === null ? <span aria-label="nothing counted">–</span> : `${burnRate(rate)} ×`}
      </dd>
    </div>
  )
}
