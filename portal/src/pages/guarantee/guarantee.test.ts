import { expect, it } from 'vitest'
import type { GuaranteedGroup, ProjectGuarantee } from '@/api'
import { appendsOf, entriesFor, entriesOf, inUse, isBounded, policyOf, termsOf, wholeOf } from './guarantee'

const group = (id: string, more: Partial<GuaranteedGroup> = {}): GuaranteedGroup => ({
  group_id: id,
  name: id,
  tokens_per_append: 20,
  own_tokens_per_s: 2_000,
  own_appends_per_s: 100,
  most_appends_per_s: 600,
  wanted_per_s: 0,
  share_per_s: 0,
  ...more,
})

const guarantee = (groups: GuaranteedGroup[], policy: ProjectGuarantee['policy'] = {}): ProjectGuarantee => ({
  project_id: 'p',
  shared_tokens_per_s: 10_000,
  max_tokens_per_s: null,
  policy,
  revision: 1,
  since: null,
  is_settled: true,
  own_tokens_per_s: 2_000,
  price: { hourly_micros: 1, monthly_micros: 730, currency: 'USD' },
  groups,
})

it('reads numbers as people type them', () => {
  expect(wholeOf('100,000')).toBe(100_000)
  expect(wholeOf(' 5 ')).toBe(5)
  for (const text of ['', '0', '1.5', 'NaN', '-3', '99999999999999']) expect(wholeOf(text)).toBeNull()
})

it('counts what groups use of the shared tokens', () => {
  const groups = [
    group('a', { share_per_s: 300, wanted_per_s: 100 }),
    group('b', { share_per_s: 200, wanted_per_s: 900 }),
  ]
  expect(inUse(guarantee(groups))).toBe(300 * 20)
  expect(inUse(guarantee([group('a', { share_per_s: 999, wanted_per_s: 999 })]))).toBe(10_000)
  expect(groups.map(isBounded)).toEqual([false, true])
  expect(isBounded(group('c', { share_per_s: null, wanted_per_s: null }))).toBe(false)
  expect(appendsOf(10_000, group('a'))).toBe(500)
})

it('does not take ranks for weights', () => {
  const ranked = { a: { weight: '2', name: 'x' } }
  expect(entriesFor('drf', 'first_fit', ranked)).toEqual({ a: { weight: '1', name: 'x' } })
  expect(entriesFor('first_fit', 'drf', ranked)).toEqual({ a: { weight: '', name: 'x' } })
  expect(entriesFor('maximum_revenue', 'drf', ranked)).toEqual(ranked)
})

it('keeps a policy through the form', () => {
  const policy = { name: 'hierarchical_drf' as const, groups: [{ group_id: 'b', weight: 3, class: 'prod' }] }
  const entries = entriesOf(guarantee([group('a'), group('b')], policy))
  expect(entries).toEqual({ a: { weight: '1', name: '' }, b: { weight: '3', name: 'prod' } })
  expect(policyOf('hierarchical_drf', entries)).toEqual(policy)
  expect(policyOf('drf', entries).groups).toEqual([{ group_id: 'b', weight: 3 }])
})

it('orders groups by rank, and leaves out those without one', () => {
  const policy = { name: 'first_fit' as const, groups: [{ group_id: 'b' }, { group_id: 'a' }] }
  const entries = entriesOf(guarantee([group('a'), group('b'), group('c')], policy))
  expect(entries.c).toEqual({ weight: '', name: '' })
  expect(policyOf('first_fit', entries)).toEqual(policy)
  expect(termsOf('5,000', 'first_fit', entries, null)?.shared_tokens_per_s).toBe(5_000)
})

it('gives no terms while a number is none', () => {
  const entries = { a: { weight: '0', name: '' } }
  expect(termsOf('5000', 'drf', entries, null)).toBeNull()
  expect(termsOf('x', 'drf', { a: { weight: '1', name: '' } }, null)).toBeNull()
})
