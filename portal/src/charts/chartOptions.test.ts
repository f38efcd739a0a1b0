import { expect, it } from 'vitest'
import { drawn, isolated } from './chartOptions'

it('draws no line along zero, but one that rises from it', () => {
  const line = { label: 'Throttled', token: 'ink', hidesZero: true }
  expect(drawn({ ...line, values: [0, 0, 0] })).toEqual([null, null, null])
  expect(drawn({ ...line, values: [0, 0, 5, 0, 0, null, 0] })).toEqual([null, 0, 5, 0, null, null, null])
  expect(drawn({ ...line, hidesZero: false, values: [0, 0] })).toEqual([0, 0])
})

it('finds the values that a line alone would not show', () => {
  expect(isolated([1, null, 2, 3, null, 0])).toEqual([0, 5])
  expect(isolated([4])).toEqual([0])
  expect(isolated([])).toEqual([])
})
