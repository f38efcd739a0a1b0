/** Choices of time for API keys. */
const DAY_S = 86_400

export const LIVES = [
  { value: '', label: 'Never' },
  { value: String(30 * DAY_S), label: 'In 30 days' },
  { value: String(90 * DAY_S), label: 'In 90 days' },
  { value: String(365 * DAY_S), label: 'In a year' },
] as const

export const GRACES = [
  { value: '0', label: 'No more' },
  { value: '3600', label: 'For an hour' },
  { value: String(DAY_S), label: 'For a day' },
  { value: String(7 * DAY_S), label: 'For a week' },
] as const

/** The time when a key of that life expires; null: never. */
export function expiryOf(lifeS: string, nowMs: number): string | null {
  return lifeS === '' ? null : new Date(nowMs + Number(lifeS) * 1_000).toISOString()
}
