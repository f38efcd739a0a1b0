const MICROS_PER_CENT = 10_000

/** Micro-units of an amount with at most two decimals, above 0. null: it is none. */
export function microsOf(text: string): number | null {
  const match = /^(\d{1,9})(?:\.(\d{1,2}))?$/.exec(text.trim().replaceAll(',', ''))
  if (!match) return null
  const cents = Number(match[1]) * 100 + Number((match[2] ?? '').padEnd(2, '0'))
  return cents > 0 ? cents * MICROS_PER_CENT : null
}

/** "12.30", of whole cents. */
export function centsText(micros: number): string {
  const cents = Math.trunc(micros / MICROS_PER_CENT)
  return `${Math.trunc(cents / 100)}.${String(cents % 100).padStart(2, '0')}`
}
