import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { answerOf, bodyOf, curlOf, fieldsOf, tagsOf, typeOf, type Contract } from './contract'

const contract = JSON.parse(readFileSync('../sdk/contract/openapi.json', 'utf8')) as Contract
const calls = tagsOf(contract, '').flatMap((tag) => tag.calls)
const call = (id: string) => {
  const found = calls.find(({ operation }) => operation.operationId === id)
  if (!found) throw new Error(`no operation ${id}`)
  return found
}

it('has every call that customers have, and none of operators', () => {
  expect(calls.length).toBeGreaterThan(80)
  expect(calls.filter(({ path }) => path.startsWith('/v1/operator'))).toEqual([])
})

it('finds by path, method and description', () => {
  const found = tagsOf(contract, 'post /v1/quotes').flatMap((tag) => tag.calls)
  expect(found.map(({ operation }) => operation.operationId)).toEqual(['create_quote'])
  expect(tagsOf(contract, 'no such thing')).toEqual([])
})

it('shows the fields of a body and of an answer', () => {
  const create = call('create_group')
  const fields = fieldsOf(contract, bodyOf(create.operation.requestBody)?.schema)
  expect(fields.find(({ name }) => name === 'rate_per_s')).toMatchObject({ type: 'integer', required: true })
  expect(answerOf(create.operation)?.status).toBe('201')
})

it('says a type in a few words', () => {
  expect(typeOf({ anyOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }] })).toBe(
    'string (date-time) or null',
  )
  expect(typeOf({ type: 'array', items: { $ref: '#/components/schemas/Price' } })).toBe('Price[]')
  expect(typeOf({ enum: ['a', 'b'] })).toBe('"a" | "b"')
  expect(typeOf({})).toBe('any')
})

it('shows how to call it', () => {
  expect(curlOf(call('get_group'), 'https://q')).toBe(
    'curl "https://q/v1/groups/$group_id" \\\n  -H "Authorization: Bearer $QUORATE_API_KEY"',
  )
  expect(curlOf(call('log_in'), 'https://q')).not.toContain('Authorization')
})
