import { expect, it } from 'vitest'
import { centsText, microsOf } from './amounts'

it.each([
  ['12.3', 12_300_000],
  ['0.01', 10_000],
  ['1,234', 1_234_000_000],
  ['0', null],
  ['1.234', null],
  ['-1', null],
  ['', null],
])('reads %s as %s', (text, micros) => expect(microsOf(text)).toBe(micros))

it('writes whole cents', () => expect(centsText(12_050_000)).toBe('12.05'))
