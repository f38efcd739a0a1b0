import type { Budget } from '@/api'
import { useMe } from '@/session'
import { Notice } from '@/ui/Notice'
import { Section } from '@/ui/Surface'
import { Ago } from '@/ui/Time'
import { actingOf, actingSentence, alertsOf, gravest, sentence } from './budgets'

/** Caps that act now, and what ends them. */
export function ActingCaps({ budgets }: { budgets: Budget[] }) {
  const { organization } = useMe()
  return actingOf(budgets).map((budget) => (
    <Notice
      key={budget.id}
      tone={budget.acted?.action === 'suspend' ? 'danger' : 'warn'}
      title={actingSentence(budget, organization.name)}
    >
      It lasts until the month is over. Raise or remove the budget to end it within a minute.
    </Notice>
  ))
}

/** The gravest alert of this month, above everything else. */
export function AlertBanner({ budgets }: { budgets: Budget[] }) {
  const { organization } = useMe()
  const reached = alertsOf(budgets)
  const worst = gravest(reached)
  if (!worst) return null
  const over = worst.alert.kind === 'actual' && worst.alert.threshold_percent >= 100
  const others = reached.length - 1
  return (
    <Notice tone={over ? 'danger' : 'warn'} title={sentence(worst, organization.name)}>
      {others > 0 && (
        <a href="#budget-alerts" className="rounded underline underline-offset-2">
          {others === 1 ? 'One more alert this month' : `${others} more alerts this month`}
        </a>
      )}
    </Notice>
  )
}

/** Every alert of this month, newest first. Alerts are shown here and in the API. */
export function AlertList({ budgets }: { budgets: Budget[] }) {
  const { organization } = useMe()
  const reached = alertsOf(budgets)
  if (reached.length === 0) return null
  return (
    <div id="budget-alerts" className="scroll-mt-6">
      <Section title="Budget alerts" description="Each threshold tells once a month.">
        <ul className="divide-y divide-line text-sm">
          {reached.map((each) => (
            <li
              key={each.alert.id}
              className="flex flex-wrap justify-between gap-x-6 gap-y-0.5 py-2.5 first:pt-0 last:pb-0"
            >
              <span className="min-w-0">{sentence(each, organization.name)}</span>
              <span className="text-[13px] text-ink-3">
                <Ago at={each.alert.at} />
              </span>
            </li>
          ))}
        </ul>
      </Section>
    </div>
  )
}
