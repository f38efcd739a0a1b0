import { moneyParts } from '@/format/money'

/**
 * An exact amount on an invoice, to the last micro-unit. Digits below the cent are paler, and zeros at the end only take
 * their place, so that amounts line up.
 */
export function Amount({ micros, currency }: { micros: number; currency: string }) {
  const { cents, rest } = moneyParts(micros, currency)
  const shown = rest.replace(/0+$/, '')
  return (
    <span className="nums whitespace-nowrap">
      {cents}
      <span className="text-[0.85em] font-normal text-ink-3">
        {shown}
        <span className="invisible">{rest.slice(shown.length)}</span>
      </span>
    </span>
  )
}
