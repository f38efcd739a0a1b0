import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, fieldMessage, keys, type Commitments } from '@/api'
import { moneyShort } from '@/format/money'
import { day } from '@/format/time'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { SelectField, TextField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'
import { useNow } from '@/ui/Time'
import { amountText, microsOf } from '../spend/budgets'
import { difference, nextMonth, owed, termText, uncovered } from './commitments'

interface Props {
  found: Commitments
  open: boolean
  onClose: () => void
}

/** Commits to an amount each month for a term. It cannot be called off, so it says first what it costs. */
export function CommitmentDialog({ found, open, onClose }: Props) {
  const begins = day(nextMonth(new Date(useNow())).toISOString())
  return (
    <Dialog
      open={open}
      onOpenChange={(next) => !next && onClose()}
      title="Commit to reservations"
      description={`From ${begins} on. The amount is owed each month, used or not, less the discount.`}
    >
      {open && <Form found={found} onClose={onClose} />}
    </Dialog>
  )
}

const WRONG_AMOUNT = 'Enter an amount of at least 1, as in 250 or 1,250.50.'
const MICROS_MIN = 1_000_000

function Form({ found, onClose }: Omit<Props, 'open'>) {
  const { currency, offers } = found
  const free = uncovered(found, new Date(useNow()))
  const [amount, setAmount] = useState(free >= MICROS_MIN ? amountText(Math.floor(free / 1_000_000) * 1_000_000) : '')
  const [months, setMonths] = useState(offers[0]?.months ?? 0)
  const [tried, setTried] = useState(false)
  const queries = useQueryClient()
  const making = useMutation({
    mutationFn: api.makeCommitment,
    onSuccess: async () => {
      await Promise.all(
        [keys.commitments, keys.invoices, keys.spend].map((queryKey) => queries.invalidateQueries({ queryKey })),
      )
      onClose()
    },
  })
  const entered = microsOf(amount)
  const micros = entered !== null && entered >= MICROS_MIN ? entered : null
  const percent = offers.find((offer) => offer.months === months)?.discount_percent ?? 0
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (micros !== null) making.mutate({ monthly_micros: micros, months })
  }
  const refused = fieldMessage(making.error, 'monthly_micros')
  return (
    <form onSubmit={submit} noValidate className="space-y-4">
      <TextField
        label="Amount each month, at list prices"
        unit={currency}
        inputMode="decimal"
        autoComplete="off"
        placeholder="250"
        hint={`Your groups reserve ${moneyShort(found.reserved_monthly_micros, currency)} a month; ${moneyShort(free, currency)} of it is not committed yet.`}
        value={amount}
        onChange={(event) => setAmount(event.target.value)}
        error={tried && micros === null ? WRONG_AMOUNT : refused}
      />
      <SelectField label="Term" value={String(months)} onChange={(event) => setMonths(Number(event.target.value))}>
        {offers.map((offer) => (
          <option key={offer.months} value={offer.months}>
            {termText(offer.months)}, {offer.discount_percent} % off
          </option>
        ))}
      </SelectField>
      {micros !== null && <Outlook micros={micros} percent={percent} free={free} currency={currency} />}
      {making.error && !refused && <ProblemNotice error={making.error} />}
      <div className="flex flex-wrap items-center justify-between gap-3 pt-1">
        <p className="text-[13px] text-ink-3">It cannot be called off.</p>
        <Button type="submit" busy={making.isPending}>
          {micros === null ? 'Commit' : `Commit to ${moneyShort(owed(micros, percent), currency)} a month`}
        </Button>
      </div>
    </form>
  )
}

interface Outlooked {
  micros: number
  percent: number
  free: number
  currency: string
}

/** A month with the amount beside one without it, if groups stay as they are. */
function Outlook({ micros, percent, free, currency }: Outlooked) {
  const change = difference(micros, percent, free)
  const amount = moneyShort(Math.abs(change), currency)
  return (
    <p role="status" className="nums rounded-xl bg-sunken px-4 py-3 text-sm text-ink-2">
      {change < 0 && `A month costs ${amount} less than now, if your groups stay as they are.`}
      {change === 0 && 'A month costs as much as now, if your groups stay as they are.'}
      {change > 0 && `A month costs ${amount} more than now: your groups reserve less than that.`}
    </p>
  )
}
