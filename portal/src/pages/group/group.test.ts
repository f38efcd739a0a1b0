import { describe, expect, it } from 'vitest'
import type { MetricsMinute } from '@/api'
import { snippet } from './connect/snippets'
import { columnsOf } from './metricsColumns'
import { arc, nodeAt } from './overview/ringGeometry'
import { budgetUsed } from './sla/clauses'

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
  it('is used up exactly at the target', () => {
    expect(budgetUsed({ target: 0.999, attained: 0.999 })).toBeCloseTo(1)
    expect(budgetUsed({ target: 0.999, attained: 1 })).toBe(0)
    expect(budgetUsed({ target: 0.999, attained: 0.997 })).toBeCloseTo(3)
  })
  it('is unknown before anything was counted, and empty for a target of 100 %', () => {
    expect(budgetUsed({ target: 0.999, attained: null })).toBeNull()
    expect(budgetUsed({ target: 1, attained: 0.9999 })).toBe(Number.POSITIVE_INFINITY)
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
    const text = snippet(language, place)
    for (const value of Object.values(place)) expect(text).toContain(value)
  })
})
