import { describe, expect, it } from 'vitest'
import type { InvoiceLine } from '@/api'
import { byGroup, priceText, quantityText } from './quantities'

const LINE: InvoiceLine = {
  group_id: 'g',
  group_name: 'orders',
  kind: 'reservation',
  description: 'Reservation',
  quantity: 2_592_000,
  unit: 'second',
  price_quantity: 3_600,
  unit_price_micros: 12_240,
  amount_micros: 8_812_800,
  correction_id: null,
  project_id: null,
}

describe('what a line counts', () => {
  it.each([
    [{ quantity: 45 }, '45 s'],
    [{ quantity: 79 }, '1.32 min'],
    [{}, '720 h'],
    [{ unit: 'entry', quantity: 1 }, '1 entry'],
    [{ unit: 'entry', quantity: 12_760 }, '12,760 entries'],
    [{ unit: 'entry', quantity: -12_760 }, '−12,760 entries'],
    [{ unit: 'byte', quantity: 1_234_500_000 }, '1.2345 GB'],
    [{ unit: 'byte', quantity: 99 }, '< 0.0001 GB'],
    [{ unit: 'megabyte_second', quantity: 17 }, '< 0.0001 GB-months'],
    [{ unit: 'megabyte_second', quantity: 3_942_000_000 }, '1.5 GB-months'],
    [{ unit: 'percent', quantity: 10 }, '10 %'],
  ])('%o is %s', (change, text) => expect(quantityText({ ...LINE, ...change })).toBe(text))

  it('has its price beside it, but a credit has none', () => {
    expect(priceText(LINE, 'USD')).toBe('$0.01224 per hour')
    const appends = {
      ...LINE,
      kind: 'appends' as const,
      unit: 'entry',
      price_quantity: 1_000_000,
      unit_price_micros: 150_000,
    }
    expect(priceText(appends, 'USD')).toBe('$0.15 per million entries')
    expect(priceText({ ...LINE, kind: 'sla_credit' }, 'USD')).toBe('')
  })

  it('is added up for each group, to the micro-unit', () => {
    const other = { ...LINE, group_id: 'h', group_name: 'audit', amount_micros: 1 }
    const groups = byGroup([LINE, other, { ...LINE, kind: 'sla_credit', amount_micros: -881_280 }])
    expect(groups.map(({ group_name, total_micros }) => [group_name, total_micros])).toEqual([
      ['orders', 7_931_520],
      ['audit', 1],
    ])
  })
})
