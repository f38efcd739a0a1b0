import { expect, it } from 'vitest'
import type { Group } from '@/api'
import type { Permission } from '@/session'
import { commandsOf } from './commands'

const group = { id: 'g', project_id: 'p', name: 'orders' } as Group
const projects = ['p', 'q'].map((id) => ({ id, name: `project ${id}`, created_at: '' }))
const of = (...permissions: Permission[]) =>
  commandsOf({ projects, groups: [group], projectId: 'p', may: (each) => permissions.includes(each) })
const labels = (value: string, ...permissions: Permission[]) =>
  of(...permissions)
    .find((section) => section.value === value)
    ?.items.map(({ label }) => label)

it('offers only what the person may open', () => {
  expect(labels('Pages', 'view')).not.toContain('Audit log')
  expect(labels('Pages', 'view')).not.toContain('New group')
  expect(labels('Pages', 'view', 'administer', 'manage')).toEqual(expect.arrayContaining(['Audit log', 'New group']))
  expect(labels('Groups', 'view')).toEqual(['orders', 'orders: metrics', 'orders: SLA'])
  expect(labels('Groups', 'view', 'read')).toContain('orders: log')
})

it('offers the other projects', () => expect(labels('Projects')).toEqual(['project q']))

it('works without a project', () => {
  const found = commandsOf({ projects: [], groups: [], projectId: undefined, may: () => true })
  expect(found.map(({ value }) => value)).toEqual(['Pages'])
})
