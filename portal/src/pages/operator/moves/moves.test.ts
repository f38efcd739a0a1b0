import { expect, it } from 'vitest'
import { lackingInWords, stepsOf, whyItMoves } from './moves'

const relocation = { cause: 'demand', since: '2026-12-01T00:00:00Z', moves: [], scarce_resource: null }
const nameOf = (id: number) => `s${String(id)}`

it('tells moves in their order, or what they wait for', () => {
  const moves = [
    { from_server: 1, to_server: 4 },
    { from_server: 2, to_server: 5 },
  ]
  expect(stepsOf({ ...relocation, moves }, nameOf)).toBe('s1 → s4, then s2 → s5')
  expect(stepsOf({ ...relocation, scarce_resource: 'storage_io' }, nameOf)).toBe('Waits for room: storage IO')
  expect(stepsOf(relocation, nameOf)).toBe('Waits for room')
})

it('tells only what is lacking', () => {
  expect(lackingInWords({ cpu: 0.42, network_bytes_per_s: 0, storage_io_per_s: 1_200 })).toBe('0.4 cores, 1.2K/s')
  expect(lackingInWords({ cpu: 0, network_bytes_per_s: 0, storage_io_per_s: 0 })).toBe('nothing any more')
})

it('has words for a cause that it does not know', () => {
  expect(whyItMoves('operator')).toBe('An operator asked for it')
  expect(whyItMoves('full_moon')).toBe('Full moon')
})
