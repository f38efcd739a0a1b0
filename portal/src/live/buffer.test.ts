import { describe, expect, it } from 'vitest'
import type { LiveSample } from '@/api'
import { seriesOf, WINDOW_S, withSample } from './buffer'

function at(second: number, append_per_s = 100): LiveSample {
  return {
    at_ms: second * 1_000 + 3,
    append_per_s,
    offered_per_s: append_per_s,
    throttled_per_s: 0,
    p50_us: 500,
    p99_us: 900,
    committed_entries: second * 100,
    epoch: 1,
  }
}

describe('the buffer of live samples', () => {
  it('keeps the last minutes and no more', () => {
    let samples: LiveSample[] = []
    for (let second = 0; second < 1_000; second += 1) samples = withSample(samples, at(second))
    expect(samples.length).toBeGreaterThanOrEqual(WINDOW_S)
    expect(samples.length).toBeLessThan(WINDOW_S + 30)
    expect(samples.at(-1)).toEqual(at(999))
  })
  it('takes the newer of two samples of a second and drops older ones', () => {
    const samples = [at(1), at(2), at(2, 50), at(1, 7)].reduce(withSample, [])
    expect(samples).toEqual([at(1), at(2, 50)])
  })
  it('shows missing seconds as a gap', () => {
    const { times, committed } = seriesOf([at(1), at(2), at(9)])
    expect(times).toEqual([1, 2, 3, 9])
    expect(committed).toEqual([100, 100, null, 100])
  })
  it('has no latency where nothing was appended', () => {
    expect(seriesOf([at(1, 0)]).p99).toEqual([null])
  })
})
