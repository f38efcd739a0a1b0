import { expect, it } from 'vitest'
import { addPasskey, whyNot } from './passkeys'
import { problemOf } from './problem'

it('says what to do when the browser has no passkeys', async () => {
  const error = await addPasskey('laptop').catch((reason: unknown) => reason)
  expect(problemOf(error)).toMatchObject({ code: 'passkey_failed', title: 'No passkey was used' })
  expect(problemOf(error).detail).toContain('offers no passkeys')
})

it('tells the standard’s errors in words for people', () => {
  expect(whyNot(new DOMException('', 'NotAllowedError'))).toContain('cancelled')
  expect(whyNot(new DOMException('', 'InvalidStateError'))).toContain('already')
  expect(whyNot(new DOMException('', 'SecurityError'))).toContain('localhost')
  expect(whyNot(new Error('odd'))).toBe('odd')
})
