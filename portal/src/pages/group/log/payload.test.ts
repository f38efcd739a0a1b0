import { expect, it } from 'vitest'
import { bytesOf, preview, whole } from './payload'

const utf8 = (text: string) => new TextEncoder().encode(text)

it('reads base64 as bytes', () => expect([...bytesOf('AP9B')]).toEqual([0, 255, 65]))

it('shows text as it is, and in one line in a list', () => {
  expect(whole(utf8('straße\n2'), 'text')).toBe('straße\n2')
  expect(preview(utf8('straße\n 2'), 'text')).toBe('straße 2')
})

it('indents JSON, and leaves alone what is none', () => {
  expect(whole(utf8('{"a":[1]}'), 'json')).toBe('{\n  "a": [\n    1\n  ]\n}')
  expect(whole(utf8('{"a":'), 'json')).toBe('{"a":')
})

it('shows as hex what is no text', () => {
  expect(whole(new Uint8Array([0, 65, 255]), 'text')).toMatch(/^000000 {2}00 41 ff +\.A\.$/)
  expect(preview(new Uint8Array([0xff, 0xfe]), 'json')).toBe('ff fe')
  expect(whole(utf8('abc'), 'hex')).toMatch(/^000000 {2}61 62 63 +abc$/)
  expect(whole(new Uint8Array(17), 'hex').split('\n')).toHaveLength(2)
})

it('forgives a character that was cut at the end', () => {
  expect(whole(utf8('straße').subarray(0, 5), 'text')).toBe('stra')
})
