import { describe, expect, it } from 'vitest'
import { money, moneyParts, moneyShort } from './money'
import { bytes, compact, latency, percent } from './quantity'
import { ago, minutesLong, monthsBack } from './time'
import { promised } from './words'

describe('money', () => {
  it.each([
    [0, '$0.00'],
    [1, '$0.000001'],
    [10_000, '$0.01'],
    [1_230_000, '$1.23'],
    [1_230_400, '$1.2304'],
    [-2_032_119, '−$2.032119'],
    [1_234_567_890_123, '$1,234,567.890123'],
  ])('shows %i micro-units exactly as %s', (micros, text) => expect(money(micros, 'USD')).toBe(text))

  it('keeps every digit on invoices', () => {
    expect(moneyParts(166_591_920, 'USD')).toEqual({ cents: '$166.59', rest: '1920' })
    expect(moneyParts(-5, 'USD')).toEqual({ cents: '−$0.00', rest: '0005' })
  })

  it.each([
    [0, '$0.00'],
    [4, '< $0.01'],
    [8_936_000, '$8.94'],
    [1_999_996_000, '$2,000.00'],
  ])('rounds %i micro-units to %s at a glance', (micros, text) => expect(moneyShort(micros, 'USD')).toBe(text))
})

describe('quantities', () => {
  it('never rounds an attainment up to 100 %', () => {
    expect(percent(0.999999, 4)).toBe('99.9999 %')
    expect(percent(0.9999999, 4)).toBe('99.9999 %')
    expect(percent(1, 4)).toBe('100 %')
    expect(percent(1, 0)).toBe('100 %')
    expect(percent(0.9995)).toBe('99.95 %')
  })
  it.each([
    [null, '–'],
    [0, '0 µs'],
    [840, '840 µs'],
    [3_210, '3.2 ms'],
    [250_000, '250 ms'],
    [1_400_000, '1.4 s'],
  ])('writes a latency of %s µs as %s', (value, text) => expect(latency(value)).toBe(text))
  it.each([
    [64, '64 B'],
    [1_048_576, '1 MiB'],
    [268_435_456, '256 MiB'],
    [1_536, '1.5 KiB'],
  ])('writes %i bytes as %s', (value, text) => expect(bytes(value)).toBe(text))
  it('shortens for axes', () => {
    expect(compact(12_300)).toBe('12.3K')
    expect(compact(0)).toBe('0')
  })
})

describe('time', () => {
  const NOW = Date.parse('2026-11-20T12:00:00Z')
  it.each([
    ['2026-11-20T11:59:58Z', 'just now'],
    ['2026-11-20T11:58:30Z', '1 minute ago'],
    ['2026-11-20T09:00:00Z', '3 hours ago'],
    ['2026-11-18T09:00:00Z', '2 days ago'],
  ])('says how long ago %s was', (iso, text) => expect(ago(iso, NOW)).toBe(text))
  it('counts months across the year’s end', () => {
    expect(monthsBack(new Date('2026-02-28T23:59:59Z'), 4)).toEqual(['2026-02', '2026-01', '2025-12', '2025-11'])
  })
  it('writes minutes as people do', () => {
    expect([0, 59, 60, 89].map(minutesLong)).toEqual(['0 min', '59 min', '1 h', '1 h 29 min'])
  })
})

it('says what an SLA promises', () => {
  const words = promised({ availability: 0.9999, latency_p99_us: 2_500 })
  expect(words).toBe('99.99 % availability, p99 of commits within 2.5 ms')
})
