import { describe, expect, it } from 'vitest'
import type { Budget, BudgetAlert } from '@/api'
import {
  actingOf,
  actingSentence,
  alertsOf,
  amountText,
  gravest,
  microsOf,
  percentsOf,
  sentence,
  standing,
} from './budgets'

describe('an amount', () => {
  it.each([
    ['250', 250_000_000],
    [' 1,250.5 ', 1_250_500_000],
    ['0.000001', 1],
    ['1000000000', 10 ** 15],
    ['', null],
    ['0', null],
    ['-5', null],
    ['1.2345678', null],
    ['12,50', null],
    ['1e3', null],
    ['1000000001', null],
  ])('%j is %j micro-units', (text, micros) => expect(microsOf(text)).toBe(micros))
  it.each([1, 10_000, 250_000_000, 1_250_500_000, 10 ** 15])('%i is read back as it was shown', (micros) =>
    expect(microsOf(amountText(micros))).toBe(micros),
  )
  it('has no decimals that say nothing', () => expect(amountText(250_000_000)).toBe('250'))
})

describe('thresholds', () => {
  it.each([
    ['50, 80, 100', [50, 80, 100]],
    ['100 50%', [50, 100]],
    ['', []],
    ['50, 50', null],
    ['0', null],
    ['1001', null],
    ['many', null],
    ['1 2 3 4 5 6 7 8 9 10 11', null],
  ])('%j are %j', (text, percents) => expect(percentsOf(text)).toEqual(percents))
})

const ALERT: BudgetAlert = {
  id: 'a',
  month: '2026-11',
  kind: 'actual',
  threshold_percent: 80,
  amount_micros: 81_000_000,
  monthly_micros: 100_000_000,
  at: '2026-11-20T12:00:00Z',
}
const BUDGET: Budget = {
  id: 'b',
  project_id: null,
  project_name: null,
  monthly_micros: 100_000_000,
  currency: 'USD',
  thresholds_percent: [50, 80, 100],
  forecast_thresholds_percent: [100],
  action: 'alert',
  acted: null,
  created_at: '2026-11-01T00:00:00Z',
  updated_at: '2026-11-01T00:00:00Z',
  alerts: [],
}

describe('alerts', () => {
  const early = { ...ALERT, id: 'e', threshold_percent: 50, at: '2026-11-10T12:00:00Z' }
  const foreseen = { ...ALERT, id: 'f', kind: 'forecast' as const, threshold_percent: 100, amount_micros: 120_000_000 }
  const reached = alertsOf([
    { ...BUDGET, alerts: [foreseen, early] },
    { ...BUDGET, alerts: [ALERT] },
  ])

  it('are listed newest first', () => expect(reached.map(({ alert }) => alert.id)).toEqual(['a', 'f', 'e']))
  it('of what was spent count more than forecasts', () => expect(gravest(reached)?.alert.id).toBe('a'))
  it('say whose budget it is, and both amounts', () => {
    expect(reached.map((each) => sentence(each, 'Example Ltd'))).toEqual([
      'Example Ltd reached 80 % of the budget of $100.00, at $81.00.',
      'The forecast for Example Ltd reached 100 % of the budget of $100.00, at $120.00.',
      'Example Ltd reached 50 % of the budget of $100.00, at $81.00.',
    ])
  })
})

it('a budget is used up before it is exceeded', () => {
  expect(standing(100, 99, 100)).toBe('within')
  expect(standing(100, 99, 101)).toBe('foreseen')
  expect(standing(100, 100, 101)).toBe('over')
})

describe('caps that act', () => {
  const suspended: Budget = {
    ...BUDGET,
    action: 'suspend',
    acted: { action: 'suspend', amount_micros: 100_000_000, at: '2026-11-20T12:00:00Z' },
  }
  const throttled: Budget = {
    ...BUDGET,
    project_name: 'shop',
    action: 'throttle',
    acted: { action: 'throttle', amount_micros: 100_000_000, at: '2026-11-20T12:00:00Z' },
  }
  it('come with the strictest first, and without those that wait', () =>
    expect(actingOf([BUDGET, throttled, { ...suspended, acted: null }, suspended])).toEqual([suspended, throttled]))
  it('say whose groups they limit', () => {
    expect(actingSentence(suspended, 'Acme')).toBe('Acme reached its cap of $100.00: its groups are suspended.')
    expect(actingSentence(throttled, 'Acme')).toBe(
      'shop reached its cap of $100.00: its groups have their reservations alone.',
    )
  })
})
