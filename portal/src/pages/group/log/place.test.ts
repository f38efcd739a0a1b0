import { expect, it } from 'vitest'
import { instantOf, offsetOf, placeOf } from './place'

it.each([
  ['17', 17],
  ['1,234,567', 1_234_567],
  ["1'000", 1_000],
  ['-1', null],
  ['1.5', null],
  ['', null],
  ['9'.repeat(16), null],
])('reads the offset %s as %s', (text, offset) => expect(offsetOf(text)).toBe(offset))

it('reads a time of the reader’s zone', () => {
  expect(instantOf('2026-11-30T12:00')).toBe(new Date(2026, 10, 30, 12).toISOString())
  expect(instantOf('')).toBeNull()
})

it('asks for the newest entries unless the address says otherwise', () => {
  expect(placeOf({})).toEqual({ partition: 0, limit: 50 })
  expect(placeOf({ offset: 3, at: '2026-11-30T12:00:00Z', partition: 1 })).toEqual({
    partition: 1,
    limit: 50,
    offset: 3,
  })
})
