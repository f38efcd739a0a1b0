import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, keys, quoteQuery, type Group, type Quote, type Sla } from '@/api'
import { moneyShort } from '@/format/money'
import { rate } from '@/format/quantity'
import { useRested } from '@/ui/rested'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { TextField } from '@/ui/Field'
import { Notice, ProblemNotice } from '@/ui/Notice'
import { PARTITIONS_MAX, partitionsOf } from './partitions'

interface Props {
  group: Group
  /** The number of partitions now. */
  present: number
  open: boolean
  onClose: () => void
}

export function AddPartitionsDialog({ group, present, open, onClose }: Props) {
  return (
    <Dialog
      open={open}
      onOpenChange={(next) => !next && onClose()}
      title="Add partitions"
      description="Entries stay where they are, and every key keeps its order. Partitions are never removed."
    >
      {open && <Form group={group} present={present} onClose={onClose} />}
    </Dialog>
  )
}

function Form({ group, present, onClose }: Omit<Props, 'open'>) {
  const [text, setText] = useState(String(Math.min(present * 2, PARTITIONS_MAX)))
  const wanted = partitionsOf(text, present, group.sla.rate_per_s)
  const queries = useQueryClient()
  const growing = useMutation({
    mutationFn: (partitions: number) => api.resizeGroup(group.id, { partitions }),
    onSuccess: async () => {
      const changed = [keys.group(group.id), keys.groups(group.project_id), keys.quotas, keys.spend]
      await Promise.all(changed.map((queryKey) => queries.invalidateQueries({ queryKey })))
      onClose()
    },
  })
  const count = 'count' in wanted ? wanted.count : null
  const rested = useRested(count === null ? null : grown(group, count))
  const quote = useQuery(quoteQuery(rested))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (count !== null && quote.data?.admissible !== false) growing.mutate(count)
  }
  return (
    <form onSubmit={submit} noValidate className="space-y-4">
      <TextField
        label="Partitions in all"
        inputMode="numeric"
        autoComplete="off"
        value={text}
        onChange={(event) => setText(event.target.value)}
        hint={count === null ? undefined : `About ${rate(Math.floor(group.sla.rate_per_s / count))} for each.`}
        error={'problem' in wanted ? wanted.problem : undefined}
      />
      {present === 1 && (
        <Notice tone="warn" title="Clients must append by key from then on">
          Programs that use <code className="font-mono text-[13px]">connect_group</code> are refused until they use{' '}
          <code className="font-mono text-[13px]">connect_partitioned_group</code>. It works with one partition, too:
          change them first.
        </Notice>
      )}
      {quote.error && <ProblemNotice error={quote.error} />}
      {growing.error && <ProblemNotice error={growing.error} />}
      {quote.data && count !== null && <Answer quote={quote.data} group={group} />}
      <div className="flex justify-end pt-1">
        <Button type="submit" busy={growing.isPending} disabledReason={hindrance(count, quote.data)}>
          Add them
        </Button>
      </div>
    </form>
  )
}

function grown(group: Group, partitions: number): Sla {
  return { ...group.sla, partitions, replaces_group_id: group.id }
}

function hindrance(count: number | null, quote: Quote | undefined): string | undefined {
  if (count === null) return 'Mend the number first.'
  return quote?.admissible === false ? 'It does not fit now.' : undefined
}

function Answer({ quote, group }: { quote: Quote; group: Group }) {
  if (quote.refusal) {
    return (
      <Notice tone="warn" title="Does not fit now">
        {quote.refusal.message}
      </Notice>
    )
  }
  const more = quote.price.monthly_micros - group.price.monthly_micros
  return (
    <p role="status" className="nums rounded-xl bg-sunken px-4 py-3 text-sm text-ink-2">
      Fits now:{' '}
      <span className="font-medium text-ink">{moneyShort(quote.price.monthly_micros, quote.price.currency)}</span> a
      month{more > 0 && `, ${moneyShort(more, quote.price.currency)} more than now`}.
    </p>
  )
}
