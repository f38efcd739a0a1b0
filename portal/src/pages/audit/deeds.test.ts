import { expect, it } from 'vitest'
import { deedOf } from './deeds'

it.each([
  ['create_group', { name: 'orders', rate_per_s: 5 }, 'created the group “orders”'],
  ['invite_member', { email: 'a@example.com', role: 'viewer' }, 'invited a@example.com'],
  ['change_role', { role: 'billing' }, 'changed a member’s role to billing'],
  ['revoke_key', null, 'revoked an API key'],
  ['log_in', { email: 'a@example.com' }, 'logged in'],
  ['some_new_call', { name: 'x' }, 'some new call'],
])('says of %s what was done', (operation, request, deed) => {
  expect(deedOf({ operation, request })).toBe(deed)
})
