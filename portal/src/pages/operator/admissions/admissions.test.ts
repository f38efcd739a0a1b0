import { expect, it } from 'vitest'
import { askedText, reasonText } from './admissions'

it('says why the fleet refused', () => {
  const of = (code: string, reason: string | null = null, scarce_resource: string | null = null) =>
    reasonText({ code, reason, scarce_resource })
  expect(of('quota_exceeded')).toBe('A quota')
  expect(of('admission_refused', 'insufficient_capacity', 'storage_io')).toBe('Too little room: storage io')
  expect(of('admission_refused', 'of_the_future')).toBe('of the future')
  expect(of('of_the_future')).toBe('of the future')
})

it('says what was asked for', () => {
  expect(askedText({ operation: 'create_group', asked: { name: 'orders', rate_per_s: 5000 } })).toBe(
    'A group “orders”, 5,000/s',
  )
  expect(askedText({ operation: 'resize_group', asked: null })).toBe('A resize')
  expect(askedText({ operation: 'reset_group', asked: {} })).toBe('reset group')
})
