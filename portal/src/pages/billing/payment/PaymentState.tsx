import type { Payment } from '@/api'
import { Badge } from '@/ui/StatusBadge'
import { dueText, state } from './words'

/** An invoice's state of payment in a list, and below it what is due and when. */
export function PaymentState({ payment, currency }: { payment: Payment | null; currency: string }) {
  if (payment === null) return null
  const { text, tone } = state(payment)
  const due = dueText(payment, currency)
  return (
    <div>
      <Badge tone={tone}>{text}</Badge>
      {due && <p className="nums mt-1 text-[13px] text-ink-3">{due}</p>}
    </div>
  )
}
