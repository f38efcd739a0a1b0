import { expect, it } from 'vitest'
import { database } from '#mock/db'
import { configurationOf, labelOf } from './configuration'

it('takes over the group as it is', () => {
  const found = database().groups.find(({ group }) => group.name === 'orders')
  if (!found) throw new Error('the mock has a group "orders"')
  const text = configurationOf(found.group, 'https://quorate.example')
  expect(text).toContain('endpoint = "https://quorate.example"')
  expect(text).toContain(`id = "${found.group.project_id}/${found.group.id}"`)
  expect(text).toContain('resource "quorate_group" "orders" {')
  expect(text).toContain('  rate_per_s          = 5000')
  expect(text).toContain('  deletion_protection = false')
  const safe = configurationOf({ ...found.group, deletion_protection: true }, '')
  expect(safe).not.toContain('deletion_protection') // Terraform's default
  expect(text).not.toContain('partitions')
  expect(text).not.toContain('null')
})

it('makes labels of any name', () => {
  expect(labelOf('audit-trail')).toBe('audit_trail')
  expect(labelOf('2026 orders')).toBe('group_2026_orders')
  expect(labelOf('注文')).toBe('group__')
})

it('has no templates in strings', () => {
  const found = database().groups[0]
  if (!found) throw new Error('the mock has groups')
  const text = configurationOf({ ...found.group, name: 'a"${b}%{c}' }, '')
  expect(text).toContain('= "a\\"$${b}%%{c}"')
})
