import { describe, expect, it } from 'vitest'
import type { Commitment } from '@/api'
import { difference, nextMonth, owed, stateOf, termText, uncovered } from './commitments'

const DOLLAR = 1_000_000
const NOW = new Date('2026-11-28T12:00:00Z')

function commitment(monthly: number, start: string, end: string): Commitment {
  return {
    id: start,
    monthly_micros: monthly * DOLLAR,
    months: 12,
    discount_percent: 20,
    start,
    end,
    created_at: start,
  }
}

describe('a commitment', () => {
  it('is owed less its discount', () => {
    expect(owed(100 * DOLLAR, 20)).toBe(80 * DOLLAR)
  })

  it.each([
    [100, 300, -20],
    [100, 100, -20],
    [100, 80, 0],
    [100, 50, 30],
  ])('to %i of %i reserved changes the month by %i', (monthly, reserved, expected) => {
    expect(difference(monthly * DOLLAR, 20, reserved * DOLLAR)).toBe(expected * DOLLAR)
  })

  it('is to come, running or ended', () => {
    const running = commitment(1, '2026-11-01T00:00:00Z', '2027-11-01T00:00:00Z')
    expect(stateOf(running, NOW)).toBe('running')
    expect(stateOf(commitment(1, '2026-12-01T00:00:00Z', '2027-12-01T00:00:00Z'), NOW)).toBe('to come')
    expect(stateOf(commitment(1, '2025-11-01T00:00:00Z', '2026-11-01T00:00:00Z'), NOW)).toBe('ended')
  })
})

it('begins with the next month, also after December', () => {
  expect(nextMonth(NOW).toISOString()).toBe('2026-12-01T00:00:00.000Z')
  expect(nextMonth(new Date('2026-12-31T23:59:59Z')).toISOString()).toBe('2027-01-01T00:00:00.000Z')
})

it('leaves what others cover', () => {
  const items = [
    commitment(30, '2026-12-01T00:00:00Z', '2027-12-01T00:00:00Z'),
    commitment(50, '2025-12-01T00:00:00Z', '2026-12-01T00:00:00Z'),
  ]
  const found = { items, offers: [], currency: 'USD', reserved_monthly_micros: 100 * DOLLAR }
  expect(uncovered(found, NOW)).toBe(70 * DOLLAR)
  expect(uncovered({ ...found, reserved_monthly_micros: 0 }, NOW)).toBe(0)
})

it.each([
  [12, 'a year'],
  [36, '3 years'],
  [18, '18 months'],
])('says %i months as %s', (months, text) => {
  expect(termText(months)).toBe(text)
})
