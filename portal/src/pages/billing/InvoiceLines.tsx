import type { Invoice, InvoiceLine } from '@/api'
import { Amount } from '@/ui/Amount'
import { byGroup, priceText, quantityText, type GroupLines } from './quantities'

/** The lines of an invoice, a block for each group, and the total that they add up to. */
export function InvoiceLines({ invoice }: { invoice: Invoice }) {
  return (
    <div>
      {byGroup(invoice.lines).map((group) => (
        <div key={group.group_id ?? ''} className="border-b border-line pb-3">
          <Block group={group} currency={invoice.currency} />
        </div>
      ))}
      <Sums invoice={invoice} />
    </div>
  )
}

/** The total, and where there is tax, how it comes about. */
function Sums({ invoice }: { invoice: Invoice }) {
  const { currency, taxes } = invoice
  return (
    <dl className="nums space-y-2.5 px-5 py-5 sm:px-6">
      {taxes.length > 0 && <Sum term="Subtotal" micros={invoice.subtotal_micros} currency={currency} />}
      {taxes.map((tax) => (
        <Sum key={`${tax.label} ${tax.rate_ppm}`} term={tax.label} micros={tax.amount_micros} currency={currency} />
      ))}
      <div
        className={`flex items-baseline justify-between gap-6 ${taxes.length > 0 ? 'border-t border-line pt-3.5' : ''}`}
      >
        <dt className="font-medium">Total</dt>
        <dd data-testid="invoice-total" className="text-xl font-semibold">
          <Amount micros={invoice.total_micros} currency={currency} />
        </dd>
      </div>
    </dl>
  )
}

function Sum({ term, micros, currency }: { term: string; micros: number; currency: string }) {
  return (
    <div className="flex items-baseline justify-between gap-6 text-sm text-ink-2">
      <dt>{term}</dt>
      <dd data-testid="invoice-part">
        <Amount micros={micros} currency={currency} />
      </dd>
    </div>
  )
}

function Block({ group, currency }: { group: GroupLines; currency: string }) {
  return (
    <table className="w-full text-sm">
      <caption className="px-5 pt-5 pb-1 text-left font-medium sm:px-6">{group.group_name}</caption>
      <thead className="sr-only">
        <tr>
          <th scope="col">Description</th>
          <th scope="col">Quantity</th>
          <th scope="col">Price</th>
          <th scope="col">Amount</th>
        </tr>
      </thead>
      <tbody>
        {group.lines.map((line) => (
          <Row key={line.correction_id ?? `${line.kind}-${line.description}`} line={line} currency={currency} />
        ))}
      </tbody>
    </table>
  )
}

function Row({ line, currency }: { line: InvoiceLine; currency: string }) {
  const credit = line.amount_micros < 0
  return (
    <tr className="align-baseline">
      <th scope="row" className="py-1.5 pr-4 pl-5 text-left font-normal text-ink-2 sm:pl-6">
        {line.description}
        <span className="block text-[13px] text-ink-3 md:hidden">
          {quantityText(line)} {priceText(line, currency) && `at ${priceText(line, currency)}`}
        </span>
      </th>
      <td className="hidden w-[22%] py-1.5 pr-4 text-right text-ink-2 md:table-cell">{quantityText(line)}</td>
      <td className="hidden w-[27%] py-1.5 pr-4 text-right text-ink-3 md:table-cell">{priceText(line, currency)}</td>
      <td className={`py-1.5 pr-5 text-right whitespace-nowrap sm:pr-6 md:w-[20%] ${credit ? 'text-accent-text' : ''}`}>
        <Amount micros={line.amount_micros} currency={currency} />
      </td>
    </tr>
  )
}
