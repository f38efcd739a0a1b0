import { useQuery } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { foundInvoicesQuery, invoiceAccountQuery, problemOf, type FoundInvoice } from '@/api'
import { moneyShort } from '@/format/money'
import { day } from '@/format/time'
import { Button } from '@/ui/Button'
import { TextField } from '@/ui/Field'
import { LoadFailed } from '@/ui/Notice'
import { Figure, Section, Skeleton } from '@/ui/Surface'
import { Ago } from '@/ui/Time'
import { EntryForm } from './EntryForm'

const KINDS: Record<string, string> = { payment: 'Payment', write_off: 'Written off', reversal: 'Reversal' }

/** An invoice by its number, as a transfer names it. */
export function InvoiceSection() {
  const [typed, setTyped] = useState('')
  const [number, setNumber] = useState('')
  const found = useQuery(foundInvoicesQuery(number))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setNumber(typed.trim())
  }
  const isWrong = found.error !== null && problemOf(found.error).code === 'validation_failed'
  return (
    <Section title="Payments" description="A transfer names an invoice by its number.">
      <form noValidate onSubmit={submit} className="flex items-end gap-2">
        <div className="min-w-0 flex-1">
          <TextField
            label="Number of the invoice"
            placeholder="INV-2026-000001"
            autoComplete="off"
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
            error={isWrong ? 'The whole number, as in INV-2026-000042.' : undefined}
          />
        </div>
        <Button type="submit" variant="secondary" className="mb-1.5" busy={found.isFetching}>
          Find
        </Button>
      </form>
      {found.error && !isWrong && (
        <LoadFailed what="the invoice" error={found.error} retry={() => void found.refetch()} />
      )}
      {found.data?.length === 0 && <p className="mt-3 text-sm text-ink-3">No invoice has this number.</p>}
      {found.data?.map((invoice) => (
        <Account key={invoice.id} invoice={invoice} />
      ))}
    </Section>
  )
}

function Account({ invoice }: { invoice: FoundInvoice }) {
  const account = useQuery(invoiceAccountQuery(invoice.id))
  if (account.isPending) return <Skeleton className="mt-4 h-24 w-full" />
  if (account.error) return <LoadFailed what="its account" error={account.error} retry={() => void account.refetch()} />
  const { payment, items } = account.data
  const amount = (micros: number) => moneyShort(micros, invoice.currency)
  return (
    <div className="mt-5 border-t border-line pt-5">
      <dl className="grid grid-cols-3 gap-4">
        <Figure label="To pay" note={invoice.due_at ? `by ${day(invoice.due_at)}` : undefined}>
          {amount(payment.payable_micros)}
        </Figure>
        <Figure label="Paid">{amount(payment.paid_micros)}</Figure>
        <Figure label="Due">{amount(payment.due_micros)}</Figure>
      </dl>
      {items.length > 0 && (
        <ul aria-label={`Entries of ${invoice.number}`} className="mt-4 divide-y divide-line text-sm">
          {items.map((entry) => (
            <li key={entry.id} className="flex flex-wrap justify-between gap-x-4 py-2">
              <span>
                {KINDS[entry.kind] ?? entry.kind} <span className="text-ink-3">{entry.reference}</span>
              </span>
              <span className="nums">
                {amount(entry.amount_micros)}{' '}
                <span className="text-ink-3">
                  <Ago at={entry.at} />
                </span>
              </span>
            </li>
          ))}
        </ul>
      )}
      {payment.due_micros > 0 && (
        <EntryForm key={payment.due_micros} invoice={invoice} dueMicros={payment.due_micros} />
      )}
    </div>
  )
}
