import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { createColumnHelper } from '@tanstack/react-table'
import { currentInvoiceQuery, invoicesQuery, type Invoice, type InvoiceHead } from '@/api'
import { day, monthName } from '@/format/time'
import { Amount } from '@/ui/Amount'
import { buttonClass } from '@/ui/Button'
import { DataTable } from '@/ui/DataTable'
import { LoadFailed } from '@/ui/Notice'
import { Badge } from '@/ui/StatusBadge'
import { Card, Loading, PageHeader, Skeleton } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { Downloads } from './Downloads'
import { InvoiceLines } from './InvoiceLines'
import { OverdueNotice } from './payment/OverdueNotice'
import { PaymentState } from './payment/PaymentState'

export function InvoicesPage() {
  usePageTitle('Invoices')
  const current = useQuery(currentInvoiceQuery)
  return (
    <>
      <PageHeader
        title="Invoices"
        description="This month’s lines until now, and every invoice before."
        actions={
          <Link to="/usage" className={buttonClass('secondary')}>
            Usage and cost
          </Link>
        }
      />
      <div className="max-w-4xl space-y-9">
        <OverdueNotice />
        {current.isPending && (
          <Loading label="Loading the current invoice">
            <Skeleton className="h-72 w-full rounded-2xl" />
          </Loading>
        )}
        {current.error && !current.data && (
          <LoadFailed what="the current invoice" error={current.error} retry={() => void current.refetch()} />
        )}
        {current.data && <Current invoice={current.data} />}
        <Issued />
      </div>
    </>
  )
}

function Current({ invoice }: { invoice: Invoice }) {
  return (
    <section aria-labelledby="current-invoice">
      <Card className="overflow-hidden">
        <div className="flex flex-wrap items-start justify-between gap-x-8 gap-y-3 border-b border-line px-5 py-5 sm:px-6">
          <div>
            <h2 id="current-invoice" className="text-[15px] font-semibold">
              {monthName(invoice.period_start.slice(0, 7))}
            </h2>
            <p className="nums mt-0.5 text-[13px] text-ink-3">Open until {day(invoice.period_end)}, in UTC</p>
          </div>
          <Badge tone="busy">Open</Badge>
        </div>
        {invoice.lines.length === 0 ? (
          <p className="px-5 py-10 text-center text-sm text-ink-3 sm:px-6">
            Nothing to pay yet. The lines appear with your first group.
          </p>
        ) : (
          <>
            <InvoiceLines invoice={invoice} />
            <div className="border-t border-line px-5 py-4 sm:px-6">
              <Downloads invoice={invoice} />
            </div>
          </>
        )}
      </Card>
    </section>
  )
}

const column = createColumnHelper<InvoiceHead>()
const COLUMNS = [
  column.accessor('number', { header: 'Number', cell: ({ row }) => <Number invoice={row.original} /> }),
  column.accessor('period_start', {
    header: 'Month',
    meta: { wide: true },
    cell: ({ getValue }) => <span className="text-ink-2">{monthName(getValue().slice(0, 7))}</span>,
  }),
  column.accessor('issued_at', {
    header: 'Issued',
    meta: { wide: true },
    cell: ({ getValue }) => <span className="text-ink-2">{issued(getValue())}</span>,
  }),
  column.accessor('payment', {
    header: 'Payment',
    cell: ({ row }) => <PaymentState payment={row.original.payment} currency={row.original.currency} />,
  }),
  column.accessor('total_micros', {
    header: 'Total',
    meta: { align: 'right' },
    cell: ({ row }) => <Amount micros={row.original.total_micros} currency={row.original.currency} />,
  }),
]

function issued(at: string | null): string {
  return at === null ? '' : day(at)
}

function Number({ invoice }: { invoice: InvoiceHead }) {
  const text = invoice.kind === 'credit_note' ? `${invoice.number} (credit note)` : invoice.number
  if (invoice.id === null) return text
  return (
    <>
      <Link
        to="/invoices/$invoiceId"
        params={{ invoiceId: invoice.id }}
        className="row-link font-medium whitespace-nowrap after:absolute after:inset-0"
      >
        {text}
      </Link>
      <span className="mt-1 block text-[13px] text-ink-3 md:hidden">{monthName(invoice.period_start.slice(0, 7))}</span>
    </>
  )
}

function Issued() {
  const invoices = useQuery(invoicesQuery)
  const issuedOnes = invoices.data?.filter((invoice) => invoice.status === 'issued')
  return (
    <section aria-labelledby="issued-invoices">
      <h2 id="issued-invoices" className="mb-3 text-[15px] font-semibold">
        Issued
      </h2>
      {invoices.isPending && (
        <Loading label="Loading invoices">
          <Skeleton className="h-32 w-full rounded-2xl" />
        </Loading>
      )}
      {invoices.error && !invoices.data && (
        <LoadFailed what="the issued invoices" error={invoices.error} retry={() => void invoices.refetch()} />
      )}
      {issuedOnes?.length === 0 && (
        <p className="rounded-2xl border border-dashed border-line-strong px-6 py-8 text-center text-sm text-ink-2">
          The first invoice is issued when this month is over.
        </p>
      )}
      {issuedOnes && issuedOnes.length > 0 && (
        <DataTable
          caption="Issued invoices"
          columns={COLUMNS}
          rows={issuedOnes}
          rowId={(invoice) => invoice.id ?? ''}
        />
      )}
    </section>
  )
}
