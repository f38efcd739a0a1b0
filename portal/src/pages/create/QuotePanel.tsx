import type { UseQueryResult } from '@tanstack/react-query'
import { Check, CircleSlash, LoaderCircle } from 'lucide-react'
import type { Quote, Refusal, Sla } from '@/api'
import { money, moneyShort } from '@/format/money'
import { promised, word } from '@/format/words'
import { Button } from '@/ui/Button'
import { ProblemNotice } from '@/ui/Notice'
import { Skeleton } from '@/ui/Surface'
import { differences } from './slaForm'

interface Props {
  /** Null while the form does not hold a valid SLA. */
  sla: Sla | null
  quote: UseQueryResult<Quote>
  settled: boolean
  refusal: Refusal | null
  error: unknown
  /** The button below the price. */
  action: { label: string; busy: boolean; hindrance?: string | undefined }
  /** Said below the button. */
  note: string
  /** The price of a month before the change; null for a new group. */
  presentMonthlyMicros: number | null
  onAdopt: (fits: Sla) => void
}

/** The SLA's price and admission, beside the form and always in view. */
export function QuotePanel(props: Props) {
  const { sla, quote, settled, refusal, error, action, note, presentMonthlyMicros, onAdopt } = props
  const refused = refusal !== null && settled
  return (
    <aside aria-label="Price and admission" className="space-y-4 lg:sticky lg:top-10">
      <div className="rounded-2xl border border-line bg-surface p-5 sm:p-6">
        <Price quote={quote} stale={!settled || !sla} refused={refused} present={presentMonthlyMicros} />
        <div aria-live="polite" className="mt-5 border-t border-line pt-5">
          <Verdict sla={sla} quote={quote} settled={settled} refusal={refusal} onAdopt={onAdopt} />
        </div>
        {quote.data && <Lines quote={quote.data} />}
      </div>
      {error ? <ProblemNotice error={error} /> : null}
      <Button
        type="submit"
        busy={action.busy}
        disabledReason={refused ? 'The fleet cannot promise this SLA; see above what would fit.' : action.hindrance}
        className="w-full"
      >
        {action.label}
      </Button>
      <p className="text-center text-[13px] text-ink-3">{note}</p>
    </aside>
  )
}

interface PriceProps {
  quote: UseQueryResult<Quote>
  stale: boolean
  refused: boolean
  present: number | null
}

function Price({ quote, stale, refused, present }: PriceProps) {
  if (!quote.data) {
    return (
      <div>
        <p className="text-[13px] text-ink-3">Per month</p>
        {quote.isError ? (
          <p className="mt-1 text-3xl font-semibold text-ink-3">–</p>
        ) : (
          <Skeleton className="mt-2 h-9 w-40" />
        )}
      </div>
    )
  }
  const { price } = quote.data
  return (
    <div className={`transition-opacity ${stale ? 'opacity-50' : ''}`}>
      <p className="text-[13px] text-ink-3">{refused ? 'Would be per month' : 'Per month'}</p>
      <p
        data-testid="monthly-price"
        className={`nums mt-0.5 font-semibold tracking-tight ${refused ? 'text-xl text-ink-3' : 'text-4xl'}`}
      >
        {moneyShort(price.monthly_micros, price.currency)}
      </p>
      <p className="nums mt-1 text-[13px] text-ink-3">{money(price.hourly_micros, price.currency)} per hour</p>
      {present !== null && !refused && (
        <p className="nums mt-1 text-[13px] text-ink-2">{comparison(price.monthly_micros, present, price.currency)}</p>
      )}
    </div>
  )
}

function comparison(next: number, present: number, currency: string): string {
  if (next === present) return 'As much as now.'
  const difference = moneyShort(Math.abs(next - present), currency)
  return `${difference} ${next > present ? 'more' : 'less'} than now.`
}

function Verdict({
  sla,
  quote,
  settled,
  refusal,
  onAdopt,
}: Pick<Props, 'sla' | 'quote' | 'settled' | 'refusal' | 'onAdopt'>) {
  if (!sla) return <p className="text-sm text-ink-3">Complete the form for a price and an answer.</p>
  if (quote.isError && settled) return <Unpriced quote={quote} />
  if (!settled || !quote.data) {
    return (
      <p className="flex items-center gap-2 text-sm text-ink-3">
        <LoaderCircle aria-hidden className="size-4 animate-spin" />
        Asking the fleet
      </p>
    )
  }
  if (refusal) return <Refused refusal={refusal} sla={sla} onAdopt={onAdopt} />
  return (
    <div className="flex gap-3">
      <span
        aria-hidden
        className="mt-0.5 flex size-5 shrink-0 items-center justify-center rounded-full bg-accent text-accent-ink"
      >
        <Check className="size-3" strokeWidth={3} />
      </span>
      <div className="text-sm">
        <p className="font-medium">We can promise this</p>
        <p className="mt-0.5 text-ink-2">{room(quote.data.moves)}</p>
        <p className="nums mt-0.5 text-ink-2">{promised(quote.data.promise)}</p>
      </div>
    </div>
  )
}

function room(moves: number): string {
  if (moves === 0) return 'There is room for every replica now.'
  const which = moves === 1 ? 'One replica moves' : `${moves} replicas move`
  return `${which} to servers with room first. Appends go on meanwhile, under the present SLA and price.`
}

function Refused({ refusal, sla, onAdopt }: { refusal: Refusal; sla: Sla; onAdopt: (fits: Sla) => void }) {
  const fits = refusal.largest_sla_that_fits
  const changes = fits ? differences(sla, fits) : []
  return (
    <div className="flex gap-3">
      <CircleSlash aria-hidden className="mt-0.5 size-5 shrink-0 text-danger" />
      <div className="min-w-0 flex-1 text-sm">
        <p className="font-medium">We cannot promise this now</p>
        <p className="mt-1 text-ink-2">
          Scarce: <strong className="font-medium text-ink">{word(refusal.scarce_resource)}</strong>. {refusal.message}
        </p>
        {fits ? (
          <div className="mt-3">
            <Button
              size="small"
              variant="secondary"
              className="h-auto min-h-8 py-1.5 whitespace-normal"
              onClick={() => onAdopt(fits)}
            >
              Use an SLA that fits
            </Button>
            {changes.length > 0 && (
              <p className="nums mt-2 text-[13px] text-ink-3">
                That is {changes.join(', ')}: the most for which every resource has room now, also the next scarce one.
              </p>
            )}
          </div>
        ) : (
          <p className="mt-2 text-ink-2">
            Nothing smaller of this kind fits either. Choose fewer replicas, or try again later.
          </p>
        )}
      </div>
    </div>
  )
}

function Unpriced({ quote }: { quote: UseQueryResult<Quote> }) {
  return (
    <ProblemNotice
      error={quote.error}
      action={
        <Button size="small" variant="secondary" onClick={() => void quote.refetch()}>
          Ask again
        </Button>
      }
    />
  )
}

const PRICED: Record<string, string> = {
  cpu: 'Processor time',
  network: 'Network between replicas',
  storage_io: 'Durable writes',
}

function Lines({ quote }: { quote: Quote }) {
  const { price } = quote
  return (
    <details className="mt-5 border-t border-line pt-4 text-[13px]">
      <summary className="rounded text-ink-2 hover:text-ink">What the price is made of</summary>
      <dl className="nums mt-3 space-y-2">
        {price.lines.map((line) => (
          <div key={line.resource} className="flex items-baseline justify-between gap-4">
            <dt className="text-ink-2">{PRICED[line.resource] ?? word(line.resource)}</dt>
            <dd>{money(line.hourly_micros, price.currency)}</dd>
          </div>
        ))}
        <div className="flex items-baseline justify-between gap-4 border-t border-line pt-2 font-medium">
          <dt>Per hour</dt>
          <dd>{money(price.hourly_micros, price.currency)}</dd>
        </div>
      </dl>
      <p className="mt-4 text-ink-2">Plus your usage:</p>
      <dl className="nums mt-2 space-y-2">
        {price.usage.map((line) => (
          <div key={line.kind} className="flex items-baseline justify-between gap-4">
            <dt className="text-ink-2">{line.label}</dt>
            <dd className="text-right">
              {money(line.unit_price_micros, price.currency)} <span className="text-ink-3">per {line.per}</span>
            </dd>
          </div>
        ))}
      </dl>
    </details>
  )
}
