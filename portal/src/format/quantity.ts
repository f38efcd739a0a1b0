const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

export function count(value: number): string {
  return WHOLE.format(value)
}

/** 12,300 → "12.3K", for axes and narrow places. */
export function compact(value: number): string {
  return Math.abs(value) < 1_000 ? String(Math.round(value * 10) / 10) : COMPACT.format(value)
}

export function rate(perSecond: number): string {
  return `${count(perSecond)}/s`
}

/** Powers of 1024, at most one decimal: 65536 → "64 KiB". */
export function bytes(value: number): string {
  let scaled = value
  let unit = 0
  while (scaled >= 1024 && unit < UNITS.length - 1) {
    scaled /= 1024
    unit += 1
  }
  return `${Math.round(scaled * 10) / 10} ${UNITS[unit]}`
}

/** A latency in microseconds with the unit that reads best: "840 µs", "3.2 ms", "1.4 s". */
export function latency(microseconds: number | null | undefined): string {
  if (microseconds === null || microseconds === undefined) return '–'
  if (microseconds < 1_000) return `${Math.round(microseconds)} µs`
  if (microseconds < 1_000_000) return `${trim(microseconds / 1_000)} ms`
  return `${trim(microseconds / 1_000_000)} s`
}

function trim(value: number): string {
  return String(value >= 100 ? Math.round(value) : Math.round(value * 10) / 10)
}

/**
 * A share as a percentage that never rounds up to 100: an SLA missed by a minute must not look met.
 */
export function percent(share: number, decimals = 3): string {
  const scale = 10 ** decimals
  const floored = Math.floor(Math.round(share * 100 * scale * 1_000) / 1_000) / scale
  const text = floored.toFixed(decimals)
  return `${decimals > 0 ? text.replace(/\.?0+$/, '') : text} %`
}
