import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, keys, type NewCorrection } from '@/api'
import { Button } from '@/ui/Button'
import { SelectField, TextField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'

const KINDS = [
  ['appends', 'Appended entries'],
  ['reads', 'Read entries'],
  ['egress', 'Read bytes'],
  ['storage', 'Storage, in megabyte-seconds'],
  ['sla_minutes', 'SLA: minutes that are bad'],
  ['sla_durability', 'SLA: durability breached'],
  ['sla_order', 'SLA: order breached'],
] as const

type Kind = NewCorrection['kind']

export function CorrectionForm({ groupId }: { groupId: string }) {
  const queries = useQueryClient()
  const [kind, setKind] = useState<Kind>('appends')
  const [quantity, setQuantity] = useState('')
  const [day, setDay] = useState('')
  const [start, setStart] = useState('')
  const [end, setEnd] = useState('')
  const [reason, setReason] = useState('')
  const isOfMinutes = kind.startsWith('sla_')
  const about: NewCorrection | null = isOfMinutes
    ? start && end
      ? { kind, reason, start: `${start}:00Z`, end: `${end}:00Z` }
      : null
    : /^-?[1-9]\d{0,14}$/.test(quantity) && day
      ? { kind, reason, quantity: Number(quantity), day }
      : null
  const correcting = useMutation({
    mutationFn: (body: NewCorrection) => api.createCorrection(groupId, body),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: keys.operator })
      setQuantity('')
      setReason('')
    },
  })
  const lacking = !about
    ? isOfMinutes
      ? 'Give both times.'
      : 'Give a whole number other than 0, and a day.'
    : reason.trim()
      ? undefined
      : 'Say why: the customer sees it.'
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (about && !lacking) correcting.mutate({ ...about, reason: reason.trim() })
  }
  return (
    <form noValidate onSubmit={submit} className="mt-5 grid gap-4 sm:grid-cols-2">
      <div className="sm:col-span-2">
        <SelectField label="Correct" value={kind} onChange={(event) => setKind(event.target.value as Kind)}>
          {KINDS.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </SelectField>
      </div>
      {isOfMinutes ? (
        <>
          <TextField
            label="From, in UTC"
            type="datetime-local"
            value={start}
            onChange={(event) => setStart(event.target.value)}
          />
          <TextField
            label="To, in UTC"
            type="datetime-local"
            value={end}
            onChange={(event) => setEnd(event.target.value)}
          />
        </>
      ) : (
        <>
          <TextField
            label="Quantity"
            hint="Negative takes off."
            inputMode="numeric"
            autoComplete="off"
            value={quantity}
            onChange={(event) => setQuantity(event.target.value)}
          />
          <TextField label="Day, in UTC" type="date" value={day} onChange={(event) => setDay(event.target.value)} />
        </>
      )}
      <div className="sm:col-span-2">
        <TextField
          label="Reason"
          hint="On documents and in SLA reports."
          autoComplete="off"
          maxLength={300}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
        />
      </div>
      {correcting.error && (
        <div className="sm:col-span-2">
          <ProblemNotice error={correcting.error} />
        </div>
      )}
      <div className="flex justify-end sm:col-span-2">
        <Button type="submit" busy={correcting.isPending} disabledReason={lacking}>
          Correct
        </Button>
      </div>
    </form>
  )
}
