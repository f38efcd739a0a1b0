import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { EVENT_TYPES, inWords, labelOf } from './eventTypes'

it('has words for each type of the contract that can be chosen', () => {
  const contract = JSON.parse(readFileSync('../sdk/contract/openapi.json', 'utf8')) as { webhooks: object }
  const chosen = Object.keys(contract.webhooks).filter((type) => type !== 'webhook.test')
  expect(EVENT_TYPES.map((each) => each.value).toSorted()).toEqual(chosen.toSorted())
})

it('says which events a webhook gets', () => {
  expect(inWords([])).toBe('All events')
  expect(inWords(['budget.cap_reached'])).toBe('A spend cap acts')
  expect(inWords(['budget.cap_reached', 'invoice.issued'])).toBe('2 types of events')
  expect(labelOf('webhook.test')).toBe('Test')
})
