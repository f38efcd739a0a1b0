import { expect, it } from 'vitest'
import { addressOf, GUIDES, guideOf, textOf, type Guide } from './guides'

it.each(GUIDES)('has the text of $slug', async (guide) => {
  expect(await textOf(guide)).toMatch(/^# /)
})

it('leads from one guide to another, and to nothing that the portal has not', () => {
  const keys = guideOf('api-keys') as Guide
  expect(addressOf(keys, 'webhooks.md#verify')).toBe('/docs/webhooks#verify')
  expect(addressOf(keys, '../../sdk/python/README.md')).toBe('/docs/python')
  expect(addressOf(keys, '../internals/api.md')).toBeNull()
  expect(addressOf(keys, 'https://example.com/')).toBe('https://example.com/')
  expect(addressOf(keys, '#here')).toBe('#here')
})
