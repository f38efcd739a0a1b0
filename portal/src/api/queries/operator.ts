import { infiniteQueryOptions, queryOptions, skipToken } from '@tanstack/react-query'
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
export const guaranteesQuery = queryOptions({
  queryKey: [...keys.operator, 'guarantees'],
  queryFn: ({ signal }) => calls.listGuarantees(signal),
  refetchInterval: SHARES_MS,
})
/** A round ends every three seconds. */
export const balanceQuery = queryOptions({
  queryKey: [...keys.operator, 'balance'],
  queryFn: ({ signal }) => calls.getBalance(signal),
  refetchInterval: UNSETTLED_MS,
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
export const hostedQuery = (serverId: number) =>
  infiniteQueryOptions({
    queryKey: [...keys.operator, 'hosted', serverId],
    queryFn: ({ pageParam, signal }) => calls.listHosted(serverId, pageParam, signal),
    ...begin,
    ...next,
  })
export const admissionsQuery = (outcome: 'refused' | null) =>
  infiniteQueryOptions({
    queryKey: [...keys.operator, 'admissions', outcome],
    queryFn: ({ pageParam, signal }) => calls.listAdmissions(outcome, pageParam, signal),
    ...begin,
    ...next,
  })
export const admissionCountsQuery = (hours: number) =>
  queryOptions({
    queryKey: [...keys.operator, 'admission-counts', hours],
    queryFn: ({ signal }) => calls.countAdmissions(hours, signal),
    refetchInterval: SETTLED_MS,
  })
export const organizationQuotasQuery = (organizationId: string) =>
  queryOptions({
    queryKey: [...keys.operator, 'quotas', organizationId],
    queryFn: ({ signal }) => calls.getOrganizationQuotas(organizationId, signal),
  })
export const quotaRequestsQuery = queryOptions({
  queryKey: [...keys.operator, 'quota-requests'],
  queryFn: ({ signal }) => calls.listQuotaRequests(signal),
  refetchInterval: SETTLED_MS,
})
/** Empty: nothing is looked for. */
export const foundInvoicesQuery = (number: string) =>
  queryOptions({
    queryKey: [...keys.operator, 'invoices', number],
    queryFn: number ? ({ signal }) => calls.findInvoices(number, signal) : skipToken,
    retry: false,
  })
export const invoiceAccountQuery = (invoiceId: string) =>
  queryOptions({
    queryKey: [...keys.operator, 'account', invoiceId],
    queryFn: ({ signal }) => calls.getInvoiceAccount(invoiceId, signal),
  })
export const correctionsQuery = (groupId: string) =>
  infiniteQueryOptions({
    queryKey: [...keys.operator, 'corrections', groupId],
    queryFn: ({ pageParam, signal }) => calls.listCorrections(groupId, pageParam, signal),
    ...begin,
    ...next,
    retry: false,
  })
export const pricesQuery = queryOptions({
  queryKey: [...keys.operator, 'prices'],
  queryFn: ({ signal }) => calls.listPrices(signal),
})
