import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { invoicesQuery, type InvoiceHead } from '@/api'
import { moneyShort } from '@/format/money'
import { day } from '@/format/time'
import { Notice } from '@/ui/Notice'

/** Invoices that should have been paid, above everything else. */
export function OverdueNotice() {
  const invoices = useQuery(invoicesQuery)
  const overdue = invoices.data?.filter(({ payment }) => payment?.state === 'overdue') ?? []
  const oldest = overdue.at(-1)
  if (!oldest?.payment?.due_at) return null
  const { due_micros, due_at } = oldest.payment
  const others = overdue.length - 1
  return (
    <Notice
      tone="warn"
      title={`${moneyShort(due_micros, oldest.currency)} of ${oldest.number} were due on ${day(due_at)}`}
    >
      <OpenInvoice invoice={oldest} />
      {others > 0 && (others === 1 ? ' · One more is overdue' : ` · ${others} more are overdue`)}
    </Notice>
  )
}

function OpenInvoice({ invoice }: { invoice: InvoiceHead }) {
  if (invoice.id === null) return null
  return (
    <Link
      to="/invoices/$invoiceId"
      params={{ invoiceId: invoice.id }}
      className="rounded text-ink underline underline-offset-2"
    >
      See it and pay
    </Link>
  )
}
