import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, guaranteeQuoteQuery, keys, type GuaranteeQuote, type GuaranteeTerms, type ProjectGuarantee } from '@/api'
import { moneyShort } from '@/format/money'
import { count } from '@/format/quantity'
import { useRested } from '@/ui/rested'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { SelectField, TextField } from '@/ui/Field'
import { Notice, ProblemNotice } from '@/ui/Notice'
import { appendsOf, entriesFor, entriesOf, POLICIES, termsOf, wholeOf, type PolicyName } from './guarantee'
import { GroupEntries } from './GroupEntries'

interface Props {
  guarantee: ProjectGuarantee
  open: boolean
  onClose: () => void
}

export function GuaranteeDialog({ guarantee, open, onClose }: Props) {
  const has = guarantee.since !== null
  return (
    <Dialog
      open={open}
      onOpenChange={(next) => !next && onClose()}
      title={has ? 'Change the guarantee' : 'Share a guarantee'}
      description="Each server of the project’s groups reserves it once. Billing is by the second."
    >
      {open && <Form guarantee={guarantee} onClose={onClose} />}
    </Dialog>
  )
}

const SUGGESTED = 100_000
type Beyond = 'any' | 'none' | 'some'

function Form({ guarantee, onClose }: Omit<Props, 'open'>) {
  const form = useTerms(guarantee)
  const queries = useQueryClient()
  const saving = useMutation({
    mutationFn: (terms: GuaranteeTerms) => api.putGuarantee(guarantee.project_id, terms),
    onSuccess: async () => {
      const changed = [keys.guarantee(guarantee.project_id), keys.invoices, keys.spend, keys.quotas]
      await Promise.all(changed.map((queryKey) => queries.invalidateQueries({ queryKey })))
      onClose()
    },
  })
  const rested = useRested(form.terms)
  const quote = useQuery(guaranteeQuoteQuery(guarantee.project_id, rested))
  const policy = POLICIES.find(({ name }) => name === form.name)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (form.terms && quote.data?.admissible !== false) saving.mutate(form.terms)
  }
  return (
    <form onSubmit={submit} noValidate className="space-y-4">
      <TextField
        label="Shared by all groups"
        unit="tokens/s"
        inputMode="numeric"
        autoComplete="off"
        value={form.tokens}
        onChange={(event) => form.setTokens(event.target.value)}
        hint={<Worth guarantee={guarantee} tokens={wholeOf(form.tokens)} />}
        error={wholeOf(form.tokens) === null ? 'Enter a whole number above 0, as in 100,000.' : undefined}
      />
      <SelectField
        label="Divided among groups that want it"
        hint={policy?.hint}
        value={form.name}
        onChange={(event) => form.setName(event.target.value as PolicyName)}
      >
        {POLICIES.map(({ name, label }) => (
          <option key={name} value={name}>
            {label}
          </option>
        ))}
      </SelectField>
      <GroupEntries groups={guarantee.groups} name={form.name} entries={form.entries} onChange={form.setEntries} />
      <SelectField
        label="Beyond that, idle capacity of others"
        value={form.beyond}
        onChange={(event) => form.setBeyond(event.target.value as Beyond)}
      >
        <option value="any">As much as there is</option>
        <option value="none">None: the guarantee is fixed</option>
        <option value="some">To a maximum in all</option>
      </SelectField>
      {form.beyond === 'some' && (
        <TextField
          label="Most in all"
          unit="tokens/s"
          inputMode="numeric"
          autoComplete="off"
          value={form.most}
          onChange={(event) => form.setMost(event.target.value)}
          hint={`Own rates are ${count(guarantee.own_tokens_per_s)} of it.`}
        />
      )}
      {quote.error && <ProblemNotice error={quote.error} />}
      {saving.error && <ProblemNotice error={saving.error} />}
      {quote.data && <Answer quote={quote.data} onUse={(tokens) => form.setTokens(count(tokens))} />}
      <div className="flex justify-end pt-1">
        <Button type="submit" busy={saving.isPending} disabledReason={hindrance(form.terms, quote.data)}>
          {guarantee.since === null ? 'Share it' : 'Change it'}
        </Button>
      </div>
    </form>
  )
}

function hindrance(terms: GuaranteeTerms | null, quote: GuaranteeQuote | undefined): string | undefined {
  if (!terms) return 'Mend the numbers first.'
  return quote?.admissible === false ? 'It does not fit now.' : undefined
}

function useTerms(guarantee: ProjectGuarantee) {
  const { shared_tokens_per_s: shared, max_tokens_per_s: max, policy } = guarantee
  const [tokens, setTokens] = useState(count(shared || SUGGESTED))
  const [name, setName] = useState<PolicyName>(policy.name ?? 'drf')
  const [entries, setEntries] = useState(() => entriesOf(guarantee))
  const fixed = guarantee.own_tokens_per_s + (wholeOf(tokens) ?? 0)
  const [beyond, setBeyond] = useState<Beyond>(max === null ? 'any' : max <= fixed ? 'none' : 'some')
  const [most, setMost] = useState(count(max ?? fixed * 2))
  const entered = beyond === 'some' ? wholeOf(most) : fixed
  const terms = termsOf(tokens, name, entries, beyond === 'any' ? null : entered)
  const isWhole = beyond !== 'some' || entered !== null
  return {
    tokens,
    setTokens,
    name,
    setName: (next: PolicyName) => {
      setEntries(entriesFor(next, name, entries))
      setName(next)
    },
    entries,
    setEntries,
    beyond,
    setBeyond,
    most,
    setMost,
    terms: isWhole ? terms : null,
  }
}

/** The tokens as appends of the groups, cheapest and dearest. */
function Worth({ guarantee, tokens }: { guarantee: ProjectGuarantee; tokens: number | null }) {
  const sorted = guarantee.groups.toSorted((left, right) => left.tokens_per_append - right.tokens_per_append)
  const [first, last] = [sorted[0], sorted.at(-1)]
  if (tokens === null || !first || !last)
    return 'Tokens of work: an append of 1 KB to three replicas in memory is about 20.'
  const of = (group: typeof first) => `${count(appendsOf(tokens, group))} appends/s of ${group.name}`
  return first === last ? `Worth ${of(first)}.` : `Worth ${of(first)}, or ${of(last)}.`
}

function Answer({ quote, onUse }: { quote: GuaranteeQuote; onUse: (tokens: number) => void }) {
  const { price, refusal } = quote
  if (!refusal) {
    return (
      <p role="status" className="nums rounded-xl bg-sunken px-4 py-3 text-sm text-ink-2">
        Fits now: <span className="font-medium text-ink">{moneyShort(price.monthly_micros, price.currency)}</span> a
        month.
      </p>
    )
  }
  const fits = refusal.largest_shared_tokens_per_s
  return (
    <Notice
      tone="warn"
      title="Does not fit now"
      action={
        fits > 0 && (
          <Button type="button" variant="secondary" size="small" onClick={() => onUse(fits)}>
            Use {count(fits)}
          </Button>
        )
      }
    >
      {refusal.message}
    </Notice>
  )
}
