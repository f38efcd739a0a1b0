import { moneyParts } from '@/format/money'

/** An exact amount on an invoice, to the last micro-unit. Digits below the cent are paler. */
export function Amount({ micros, currency }: { micros: number; currency: string }) {
  const { cents, rest } = moneyParts(micros, currency)
  return (
    <span className="nums whitespace-nowrap">
      {cents}
      <span className="text-[0.85em] font-normal text-ink-3">{rest}</span>
    </span>
  )
}
