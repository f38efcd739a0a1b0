import { expect, test } from 'vitest'
import { partitionsOf, wantsMore } from './partitions'

test('only more partitions than now are taken', () => {
  expect(partitionsOf(' 8 ', 4, 1_000)).toEqual({ count: 8 })
  expect(partitionsOf('4', 4, 1_000)).toEqual({ problem: 'More than the 4 that there are.' })
  expect(partitionsOf('1', 1, 1_000)).toEqual({ problem: 'More than the 1 that there is.' })
  expect(partitionsOf('257', 4, 1_000)).toEqual({ problem: 'At most 256.' })
  expect(partitionsOf('100', 4, 50)).toEqual({ problem: 'At most as many as the group reserves appends a second.' })
  for (const text of ['', '-3', '2.5', 'eight', '1e2']) expect(partitionsOf(text, 1, 1_000)).toHaveProperty('problem')
})

test('a partition wants more if its load is clearly above its part', () => {
  expect(wantsMore({ wanted_per_s: null, rate_per_s: 100 })).toBe(false)
  expect(wantsMore({ wanted_per_s: 105, rate_per_s: 100 })).toBe(false)
  expect(wantsMore({ wanted_per_s: 106, rate_per_s: 100 })).toBe(true)
})
