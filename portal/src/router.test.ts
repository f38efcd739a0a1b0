import { readFileSync } from 'node:fs'
import { QueryClient } from '@tanstack/react-query'
import { expect, it } from 'vitest'
import { makeRouter } from './router'

it('lists its addresses for the service, which answers 404 to others', () => {
  const { routesByPath } = makeRouter(new QueryClient())
  const addresses = new Set(Object.keys(routesByPath).map((path) => path.replace(/(.)\/$/, '$1')))
  const listed = readFileSync('public/routes.txt', 'utf8').trim().split('\n')
  expect(listed).toEqual([...addresses].toSorted())
})
