const MICROS = 1_000_000

/**
 * Exact text of an amount in integer micro-units: at least two decimals, at most six, never rounded.
 * The arithmetic stays in integers, because the amounts on an invoice must add up to the last digit.
 */
export function money(micros: number, currency: string): string {
  const sign = micros < 0 ? '−' : ''
  const absolute = Math.abs(micros)
  const whole = Math.trunc(absolute / MICROS)
  const decimals = String(absolute % MICROS)
    .padStart(6, '0')
    .replace(/0{1,4}$/, '')
  return `${sign}${symbol(currency)}${whole.toLocaleString('en')}.${decimals}`
}

/**
 * The same amount with all six decimals, split after the cents. On an invoice the digits line up and add up, and
 * readers can stop at the cents.
 */
export function moneyParts(micros: number, currency: string): { cents: string; rest: string } {
  const absolute = Math.abs(micros)
  const whole = Math.trunc(absolute / MICROS).toLocaleString('en')
  const decimals = String(absolute % MICROS).padStart(6, '0')
  return {
    cents: `${micros < 0 ? '−' : ''}${symbol(currency)}${whole}.${decimals.slice(0, 2)}`,
    rest: decimals.slice(2),
  }
}

/** Rounded to cents for a quick look (prices per month), and marked if that hides a small amount. */
export function moneyShort(micros: number, currency: string): string {
  const cents = Math.round(Math.abs(micros) / 10_000)
  const sign = micros < 0 ? '−' : ''
  if (micros !== 0 && cents === 0) return `< ${symbol(currency)}0.01`
  const whole = Math.trunc(cents / 100).toLocaleString('en')
  return `${sign}${symbol(currency)}${whole}.${String(cents % 100).padStart(2, '0')}`
}

function symbol(currency: string): string {
  const parts = new Intl.NumberFormat('en', { style: 'currency', currency }).formatToParts(0)
  return parts.find((part) => part.type === 'currency')?.value ?? `${currency} `
}
