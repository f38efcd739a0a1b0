import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { ChevronLeft } from 'lucide-react'
import { invoiceQuery, type Invoice } from '@/api'
import { day, monthName } from '@/format/time'
import { useMe } from '@/session'
import { Logo } from '@/ui/Logo'
import { LoadFailed } from '@/ui/Notice'
import { Card, Loading, Skeleton } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { Downloads } from './Downloads'
import { InvoiceLines } from './InvoiceLines'
import { PaymentPanel } from './payment/PaymentPanel'

/** After a payment on the provider's page, until the provider has told of it. */
const CONFIRMING_MS = 3_000

const route = getRouteApi('/app/invoices/$invoiceId')

export function InvoicePage() {
  const { invoiceId } = route.useParams()
  const { paid: justPaid = false } = route.useSearch()
  const invoice = useQuery({
    ...invoiceQuery(invoiceId),
    refetchInterval: ({ state }) => (justPaid && state.data?.payment?.due_micros ? CONFIRMING_MS : false),
  })
  usePageTitle(invoice.data?.number ?? 'Invoice')
  return (
    <div className="max-w-3xl">
      <div className="mb-5 flex flex-wrap items-center justify-between gap-3 print:hidden">
        <Link
          to="/invoices"
          className="-ml-1 inline-flex items-center gap-1 rounded text-[13px] text-ink-2 hover:text-ink"
        >
          <ChevronLeft aria-hidden className="size-4" />
          Invoices
        </Link>
        {invoice.data && <Downloads invoice={invoice.data} />}
      </div>
      {invoice.isPending && (
        <Loading label="Loading invoice">
          <Skeleton className="h-96 w-full rounded-2xl" />
        </Loading>
      )}
      {invoice.error && !invoice.data && (
        <LoadFailed what="this invoice" error={invoice.error} retry={() => void invoice.refetch()} />
      )}
      {invoice.data && (
        <div className="space-y-5">
          {invoice.data.payment && (
            <PaymentPanel
              invoiceId={invoiceId}
              payment={invoice.data.payment}
              currency={invoice.data.currency}
              justPaid={justPaid}
            />
          )}
          <Sheet invoice={invoice.data} />
        </div>
      )}
    </div>
  )
}

function Sheet({ invoice }: { invoice: Invoice }) {
  const { organization } = useMe()
  const what = invoice.kind === 'credit_note' ? 'Credit note' : 'Invoice'
  return (
    <Card className="overflow-hidden print:border-0">
      <div className="border-b border-line px-5 py-6 sm:px-6">
        <Logo />
        <h1 className="mt-6 text-[26px] leading-tight font-semibold">
          {what} <span className="whitespace-nowrap">{invoice.number}</span>
        </h1>
        <dl className="nums mt-5 grid grid-cols-2 gap-x-8 gap-y-4 text-sm sm:grid-cols-4">
          <Fact term="For">{organization.name}</Fact>
          <Fact term="Period">{`${monthName(invoice.period_start.slice(0, 7))}, UTC`}</Fact>
          <Fact term="Issued">{invoice.issued_at === null ? 'Not yet' : day(invoice.issued_at)}</Fact>
          {invoice.payment?.due_at && <Fact term="Due">{day(invoice.payment.due_at)}</Fact>}
        </dl>
      </div>
      <InvoiceLines invoice={invoice} />
    </Card>
  )
}

function Fact({ term, children }: { term: string; children: string }) {
  return (
    <div>
      <dt className="text-[13px] text-ink-3">{term}</dt>
      <dd className="mt-0.5">{children}</dd>
    </div>
  )
}
