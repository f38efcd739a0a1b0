import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import * as calls from '../calls'
import { keys, SHARES_MS, SETTLED_MS, UNSETTLED_MS } from './keys'

const begin = { initialPageParam: null as string | null }
const next = { getNextPageParam: (last: { next_cursor: string | null }) => last.next_cursor }

export const operatorQuery = queryOptions({
  queryKey: [...keys.operator, 'me'],
  queryFn: ({ signal }) => calls.getOperator(signal),
  retry: false,
})
/** A drain is followed closely. */
export const serversQuery = queryOptions({
  queryKey: [...keys.operator, 'servers'],
  queryFn: ({ signal }) => calls.listServers(signal),
  refetchInterval: ({ state }) =>
    state.data?.some((server) => server.drain?.state === 'draining') ? UNSETTLED_MS : SETTLED_MS / 3,
})
export const capacityQuery = queryOptions({
  queryKey: [...keys.operator, 'capacity'],
  queryFn: ({ signal }) => calls.getCapacity(signal),
  refetchInterval: SETTLED_MS / 3,
})
export const joinTokensQuery = queryOptions({
  queryKey: [...keys.operator, 'join-tokens'],
  queryFn: ({ signal }) => calls.listJoinTokens(signal),
  refetchInterval: SETTLED_MS,
})
export const tenantsQuery = (search: string) =>
  infiniteQueryOptions({
    queryKey: [...keys.operator, 'organizations', search],
    queryFn: ({ pageParam, signal }) => calls.listOrganizations(search, pageParam, signal),
    ...begin,
    ...next,
  })
export const lendingQuery = infiniteQueryOptions({
  queryKey: [...keys.operator, 'lending'],
  queryFn: ({ pageParam, signal }) => calls.listLending(pageParam, signal),
  ...begin,
  ...next,
  refetchInterval: SHARES_MS,
})
export const sharingQuery = queryOptions({
  queryKey: [...keys.operator, 'sharing'],
  queryFn: ({ signal }) => calls.getSharing(signal),
  refetchInterval: SHARES_MS,
  retry: false,
})
export const operatorEventsQuery = infiniteQueryOptions({
  queryKey: [...keys.operator, 'audit'],
  queryFn: ({ pageParam, signal }) => calls.listOperatorEvents(pageParam, signal),
  ...begin,
  ...next,
})
