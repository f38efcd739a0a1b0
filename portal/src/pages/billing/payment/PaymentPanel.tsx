import { useQuery } from '@tanstack/react-query'
import { paymentsQuery, type Payment } from '@/api'
import { moneyShort } from '@/format/money'
import { day } from '@/format/time'
import { LoadFailed, Notice } from '@/ui/Notice'
import { Badge } from '@/ui/StatusBadge'
import { Figure, Loading, Section, Skeleton } from '@/ui/Surface'
import { Ago } from '@/ui/Time'
import { Pay } from './Pay'
import { history, state, type Happening } from './words'

interface Props {
  invoiceId: string
  payment: Payment
  currency: string
  /** The reader comes back from the provider's page. */
  justPaid: boolean
}

/** How far an invoice is paid, what is left and how to pay it, and what happened. */
export function PaymentPanel({ invoiceId, payment, currency, justPaid }: Props) {
  const { text, tone } = state(payment)
  const due = payment.due_micros > 0
  const short = (micros: number) => moneyShort(micros, currency)
  return (
    <Section title="Payment" aside={<Badge tone={tone}>{text}</Badge>}>
      <div className="space-y-5">
        {justPaid && <Thanks recorded={!due} />}
        <dl className="grid grid-cols-2 gap-x-8 gap-y-4 sm:grid-cols-3">
          <Figure label={due ? 'Due' : 'To pay'} note={due ? dueNote(payment) : 'Nothing is left to pay'}>
            {short(payment.due_micros)}
          </Figure>
          <Figure label="Paid" note={`of ${short(payment.payable_micros)}`}>
            {short(payment.paid_micros)}
          </Figure>
          {payment.overpaid_micros > 0 && (
            <Figure label="Overpaid" note="The seller returns it">
              {short(payment.overpaid_micros)}
            </Figure>
          )}
        </dl>
        {due && !justPaid && <Pay invoiceId={invoiceId} payment={payment} currency={currency} />}
        <History invoiceId={invoiceId} payment={payment} currency={currency} />
      </div>
    </Section>
  )
}

function dueNote({ state: now, due_at }: Payment): string {
  if (due_at === null) return ''
  return now === 'overdue' ? `It was due on ${day(due_at)}` : `By ${day(due_at)}`
}

function Thanks({ recorded }: { recorded: boolean }) {
  if (recorded) return <Notice tone="good" title="Thank you. Your payment has arrived." announce />
  return (
    <Notice tone="info" title="Thank you. Your payment is being confirmed." announce>
      This takes a few seconds, and the page shows it by itself. There is no need to pay again.
    </Notice>
  )
}

function History({ invoiceId, payment, currency }: Omit<Props, 'justPaid'>) {
  // The key holds the paid amount, so that the list follows the figures above it.
  const entries = useQuery(paymentsQuery(invoiceId, payment.paid_micros))
  if (entries.isPending) {
    return (
      <Loading label="Loading payments">
        <Skeleton className="h-5 w-2/3" />
      </Loading>
    )
  }
  if (!entries.data)
    return <LoadFailed what="the payments" error={entries.error} retry={() => void entries.refetch()} />
  const happened = history(payment, entries.data, currency)
  if (happened.length === 0) return null
  return (
    <ul aria-label="Payments and reminders" className="divide-y divide-line border-t border-line text-sm">
      {happened.map((each) => (
        <Row key={each.id} happening={each} currency={currency} />
      ))}
    </ul>
  )
}

function Row({ happening, currency }: { happening: Happening; currency: string }) {
  return (
    <li className="flex flex-wrap items-baseline justify-between gap-x-6 gap-y-0.5 py-2.5 last:pb-0">
      <span className="min-w-0 break-words">
        {happening.text} <span className="text-ink-3">{happening.detail}</span>
      </span>
      <span className="flex w-full items-baseline justify-between gap-4 sm:w-auto">
        <span className="text-[13px] text-ink-3">
          <Ago at={happening.at} />
        </span>
        {happening.micros !== null && (
          <span className="nums w-24 text-right font-medium">{moneyShort(happening.micros, currency)}</span>
        )}
      </span>
    </li>
  )
}
