import { describe, expect, it } from 'vitest'
import type { MetricsMinute } from '@/api'
import { snippet } from './connect/snippets'
import { columnsOf } from './metricsColumns'
import { arc, nodeAt } from './overview/ringGeometry'
import { budgetAmount, budgetUsed, burnRate, shareOfMonth } from './sla/clauses'

describe('the columns of the metrics charts', () => {
  const minute = (clock: string): MetricsMinute => ({
    at: `2026-11-20T${clock}:00Z`,
    reserved_per_s: 5,
    offered_per_s: 4,
    committed_per_s: 4,
    throttled_per_s: 0,
    p50_us: 1,
    p99_us: 2,
  })
  it('leave a gap for minutes without telemetry', () => {
    const { times, committed } = columnsOf([minute('10:00'), minute('10:01'), minute('10:05')])
    expect(times.map((time) => (time - (times[0] ?? 0)) / 60)).toEqual([0, 1, 2, 5])
    expect(committed).toEqual([4, 4, null, 4])
  })
})

describe('the error budget', () => {
  const clause = (allowed: number, used: number, attained: number | null = 0.9995) => ({
    attained,
    error_budget: {
      unit: 'minutes' as const,
      allowed,
      used,
      left: allowed - used,
      burn_rates: { hour: 0, six_hours: 0, month: 0 },
    },
  })
  it('is used up exactly when as much was missed as is allowed', () => {
    expect(budgetUsed(clause(43, 43))).toBe(1)
    expect(budgetUsed(clause(43, 0))).toBe(0)
    expect(budgetUsed(clause(10, 30))).toBe(3)
  })
  it('is unknown before anything was counted, and a budget of nothing is used up by any miss', () => {
    expect(budgetUsed(clause(43, 0, null))).toBeNull()
    expect(budgetUsed(clause(0, 1))).toBe(Number.POSITIVE_INFINITY)
    expect(budgetUsed(clause(0, 0))).toBe(0)
  })
  it('is told in a unit that reads well', () => {
    expect([0, 1_400, 99_000, 252_000].map((ms) => budgetAmount('ms', ms))).toEqual(['0 s', '1.4 s', '99 s', '4.2 min'])
    expect(budgetAmount('ms', 7_200_000)).toBe('2 h')
    expect(budgetAmount('minutes', 72)).toBe('1 h 12 min')
    expect([null, 0, 0.333, 14.4, 2_000].map(burnRate)).toEqual(['–', '0', '0.33', '14.4', '2,000'])
  })
})

describe('the ring', () => {
  it('has the head at the top and goes clockwise', () => {
    const [head, second] = [nodeAt(0, 4), nodeAt(1, 4)]
    expect(head.x).toBeCloseTo(150)
    expect(head.y).toBeLessThan(150)
    expect(second.x).toBeGreaterThan(150)
    expect(second.y).toBeCloseTo(150)
  })
  it.each([2, 3, 5, 7])('joins %i nodes without crossing them', (total) => {
    const numbers =
      arc(total - 1, total)
        .match(/-?[\d.]+/g)
        ?.map(Number) ?? []
    const end = { x: numbers.at(-2) ?? 0, y: numbers.at(-1) ?? 0 }
    const head = nodeAt(0, total)
    expect(Math.hypot(end.x - head.x, end.y - head.y)).toBeGreaterThan(27)
  })
})

describe('the snippets', () => {
  const place = { apiUrl: 'https://quorate.example', apiKey: 'qk_secret', groupId: 'g-1' }
  it.each(['python', 'javascript', 'curl'] as const)('name the place and the key in %s', (language) => {
    const text = snippet(language, { ...place, isDivided: false })
    for (const value of Object.values(place)) expect(text).toContain(value)
  })

  it('append by key to a group with partitions', () => {
    expect(snippet('python', { ...place, isDivided: true })).toContain('connect_partitioned_group(')
    expect(snippet('javascript', { ...place, isDivided: true })).toContain('connectPartitionedGroup } from "quorate"')
    expect(snippet('python', { ...place, isDivided: true })).toContain('key="order-17"')
  })
})

it('knows how much of a month has passed', () => {
  expect(shareOfMonth('2026-11', Date.UTC(2026, 10, 16))).toBe(0.5)
  expect(shareOfMonth('2026-11', Date.UTC(2026, 9, 3))).toBe(0)
  expect(shareOfMonth('2026-12', Date.UTC(2027, 0, 1))).toBe(1)
})
