import { Link } from '@tanstack/react-router'
import type { Budget, Spend } from '@/api'
import { money, moneyShort } from '@/format/money'
import { day, monthName } from '@/format/time'
import { useMe } from '@/session'
import { Button } from '@/ui/Button'
import { Figure, Section } from '@/ui/Surface'
import { BudgetBar } from './BudgetBar'
import { standing } from './budgets'

interface Props {
  spend: Spend
  budget: Budget | undefined
  onEdit: () => void
}

/** The cost of the month so far and by its end, beside the month before, and the organization's budget. */
export function ThisMonth({ spend, budget, onEdit }: Props) {
  const { forecast, currency, previous } = spend
  const short = (micros: number) => moneyShort(micros, currency)
  return (
    <Section
      title={`Spend in ${monthName(spend.month)}`}
      description={`Without tax and SLA credits, until now. The month ends on ${day(spend.period_end)}, in UTC.`}
      aside={
        <Button variant="secondary" size="small" onClick={onEdit}>
          {budget ? 'Change budget' : 'Set budget'}
        </Button>
      }
    >
      <dl className="grid grid-cols-2 gap-x-6 gap-y-5 sm:grid-cols-3">
        <Figure label="Spent so far">
          <span data-testid="spent" title={money(spend.spent_micros, currency)}>
            {short(spend.spent_micros)}
          </span>
        </Figure>
        <Figure label="Forecast" note={<Range spend={spend} />}>
          {short(forecast.total_micros)}
        </Figure>
        <Figure
          label={previous ? monthName(previous.month) : 'Month before'}
          note={previous && <Previous {...previous} />}
        >
          {previous ? short(previous.total_micros) : '–'}
        </Figure>
      </dl>
      {budget && <Bar spend={spend} budget={budget} />}
      <p className="mt-5 text-[13px] leading-relaxed text-ink-3">
        The forecast has every reservation until the end of the month.{' '}
        {`Usage goes on at the rate since ${day(forecast.basis.observed_from)}.`}
      </p>
    </Section>
  )
}

function Range({ spend: { forecast, currency } }: { spend: Spend }) {
  if (forecast.low_micros === forecast.high_micros) return null
  return (
    <>
      {moneyShort(forecast.low_micros, currency)} to {moneyShort(forecast.high_micros, currency)}
    </>
  )
}

function Previous({ status, invoice_id }: NonNullable<Spend['previous']>) {
  if (invoice_id === null || status === 'open') return 'Its invoice is not issued yet'
  return (
    <Link to="/invoices/$invoiceId" params={{ invoiceId: invoice_id }} className="rounded underline underline-offset-2">
      Its invoice
    </Link>
  )
}

const WORDS = {
  within: 'The forecast is within the budget.',
  foreseen: 'The forecast is above the budget.',
  over: 'The budget is used up. Nothing is stopped because of it.',
}

function Bar({ spend, budget }: { spend: Spend; budget: Budget }) {
  const { organization } = useMe()
  const [spent, forecast] = [spend.spent_micros, spend.forecast.total_micros]
  return (
    <div className="mt-6 border-t border-line pt-5">
      <div className="mb-2.5 flex flex-wrap items-baseline justify-between gap-x-6 gap-y-1 text-sm">
        <h3 className="font-medium">Budget of {organization.name}</h3>
        <p className="nums">
          <span className="font-semibold">{moneyShort(spent, budget.currency)}</span>{' '}
          <span className="text-ink-3">of {moneyShort(budget.monthly_micros, budget.currency)}</span>
        </p>
      </div>
      <BudgetBar label={`Budget of ${organization.name}`} budget={budget} spent={spent} forecast={forecast} labelled />
      <p className="mt-1 text-[13px] text-ink-2">{WORDS[standing(budget.monthly_micros, spent, forecast)]}</p>
    </div>
  )
}
