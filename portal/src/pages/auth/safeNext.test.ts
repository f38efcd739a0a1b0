import { expect, it } from 'vitest'
import { safeNext } from './safeNext'

it.each([
  ['/projects/1/groups?q=a', '/projects/1/groups?q=a'],
  [undefined, '/'],
  ['https://elsewhere.example/', '/'],
  ['//elsewhere.example/', '/'],
  ['/\\elsewhere.example/', '/'],
  ['javascript:alert(1)', '/'],
])('after logging in, %s leads to %s', (next, path) => expect(safeNext(next)).toBe(path))
