import type { Budget } from '@/api'
import { moneyShort } from '@/format/money'
import { standing, type Standing } from './budgets'

const FILLS: Record<Standing, { spent: string; forecast: string }> = {
  within: { spent: 'bg-accent', forecast: 'bg-accent/25' },
  foreseen: { spent: 'bg-warn', forecast: 'bg-warn/30' },
  over: { spent: 'bg-danger', forecast: 'bg-danger/30' },
}
/** Least distance of two labels, as a share of the bar. */
const LABEL_SHARE = 0.11

interface Props {
  label: string
  budget: Budget
  spent: number
  forecast: number
  /** Labels of thresholds below the bar. */
  labelled?: boolean
}

/** A bar of what was spent of a budget, with the forecast behind it in a paler tone and a tick at each threshold. */
export function BudgetBar({ label, budget, spent, forecast, labelled = false }: Props) {
  const { monthly_micros: monthly, currency } = budget
  const scale = Math.max(monthly, forecast, spent)
  const fills = FILLS[standing(monthly, spent, forecast)]
  const percents = [...new Set([...budget.thresholds_percent, ...budget.forecast_thresholds_percent])]
  const ticks = percents
    .map((percent) => ({ percent, share: (monthly * percent) / 100 / scale }))
    .filter(({ share }) => share <= 1)
    .toSorted((one, other) => one.share - other.share)
  const text =
    `${moneyShort(spent, currency)} of ${moneyShort(monthly, currency)} spent, ` +
    `${moneyShort(forecast, currency)} expected by the end of the month`
  return (
    <div>
      <div
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={monthly}
        aria-valuenow={Math.min(spent, monthly)}
        aria-valuetext={text}
        className={`relative overflow-hidden rounded-full bg-line ${labelled ? 'h-3' : 'h-1.5'}`}
      >
        <div
          className={`absolute inset-y-0 left-0 ${fills.forecast}`}
          style={{ width: percentText(forecast / scale) }}
        />
        <div className={`absolute inset-y-0 left-0 ${fills.spent}`} style={{ width: percentText(spent / scale) }} />
        {ticks
          .filter(({ share }) => share < 1)
          .map(({ percent, share }) => (
            <div key={percent} className="absolute inset-y-0 w-0.5 bg-surface" style={{ left: percentText(share) }} />
          ))}
      </div>
      {labelled && (
        <div aria-hidden className="nums relative mt-1.5 h-5 text-xs text-ink-3">
          {roomy(ticks).map(({ percent, share }) => (
            <span key={percent} className={`absolute ${shift(share)}`} style={{ left: percentText(share) }}>
              {percent} %
            </span>
          ))}
        </div>
      )}
    </div>
  )
}

interface Tick {
  percent: number
  share: number
}

/** The highest threshold keeps its label; a lower one too close to it has none. */
function roomy(ticks: Tick[]): Tick[] {
  const kept: Tick[] = []
  for (const tick of ticks.toReversed())
    if (kept.every(({ share }) => share - tick.share >= LABEL_SHARE)) kept.push(tick)
  return kept
}

function shift(share: number): string {
  if (share > 0.95) return '-translate-x-full'
  return share < 0.05 ? '' : '-translate-x-1/2'
}

function percentText(share: number): string {
  return `${Math.min(1, share) * 100}%`
}
