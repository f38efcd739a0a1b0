import { Check, CircleSlash } from 'lucide-react'
import type { Quote } from '@/api'
import { moneyShort } from '@/format/money'

/**
 * Keeps the quote in view while typing on narrow screens, where the panel is below the form. The panel announces it, so
 * this bar is silent for screen readers.
 */
export function QuoteBar({
  quote,
  settled,
  refused,
}: {
  quote: Quote | undefined
  settled: boolean
  refused: boolean
}) {
  if (!quote) return null
  return (
    <div
      aria-hidden
      className={`sticky bottom-0 -mx-4 flex items-center justify-between gap-4 border-t border-line bg-surface px-4 py-3 sm:-mx-8 sm:px-8 lg:hidden ${settled ? '' : 'text-ink-3'}`}
    >
      <span className="nums">
        <span className="text-lg font-semibold tracking-tight">
          {moneyShort(quote.price.monthly_micros, quote.price.currency)}
        </span>{' '}
        <span className="text-[13px] text-ink-3">per month</span>
      </span>
      <span className="inline-flex items-center gap-1.5 text-[13px]">
        {refused ? <CircleSlash className="size-4 text-danger" /> : <Check className="size-4 text-accent" />}
        {refused ? 'Does not fit now' : 'Fits'}
      </span>
    </div>
  )
}
