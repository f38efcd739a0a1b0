import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, keys, type FoundInvoice } from '@/api'
import { Button } from '@/ui/Button'
import { SelectField, TextField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'
import { centsText, microsOf } from './amounts'

/** Records money that came in, or a debt that is given up. */
export function EntryForm({ invoice, dueMicros }: { invoice: FoundInvoice; dueMicros: number }) {
  const queries = useQueryClient()
  const [kind, setKind] = useState<'payment' | 'write_off'>('payment')
  const [amount, setAmount] = useState(() => centsText(dueMicros))
  const [reference, setReference] = useState('')
  const micros = microsOf(amount)
  const recording = useMutation({
    mutationFn: (amount_micros: number) =>
      api.recordPayment(invoice.id, { kind, amount_micros, reference: reference.trim() }),
    onSuccess: () => queries.invalidateQueries({ queryKey: keys.operator }),
  })
  const lacking = micros === null ? 'Mend the amount first.' : reference.trim() ? undefined : 'Name the money.'
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (micros !== null && !lacking) recording.mutate(micros)
  }
  return (
    <form noValidate onSubmit={submit} className="mt-5 grid gap-4 sm:grid-cols-2">
      <SelectField label="Record" value={kind} onChange={(event) => setKind(event.target.value as typeof kind)}>
        <option value="payment">A payment</option>
        <option value="write_off">A debt that is given up</option>
      </SelectField>
      <TextField
        label="Amount"
        unit={invoice.currency}
        inputMode="decimal"
        autoComplete="off"
        value={amount}
        onChange={(event) => setAmount(event.target.value)}
        error={micros === null ? 'An amount with at most two decimals.' : undefined}
      />
      <div className="sm:col-span-2">
        <TextField
          label="Reference"
          hint="Its name at the bank. The same reference is recorded once."
          autoComplete="off"
          maxLength={200}
          value={reference}
          onChange={(event) => setReference(event.target.value)}
        />
      </div>
      {recording.error && (
        <div className="sm:col-span-2">
          <ProblemNotice error={recording.error} />
        </div>
      )}
      <div className="flex justify-end sm:col-span-2">
        <Button type="submit" busy={recording.isPending} disabledReason={lacking}>
          Record
        </Button>
      </div>
    </form>
  )
}
