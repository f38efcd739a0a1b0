import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import * as calls from '../calls'
import { keys, SETTLED_MS, UNSETTLED_MS } from './keys'

export const auditQuery = infiniteQueryOptions({
  queryKey: keys.audit,
  queryFn: ({ pageParam, signal }) => calls.listAudit(pageParam, signal),
  initialPageParam: null as string | null,
  getNextPageParam: (last) => last.next_cursor,
})
export const organizationQuery = queryOptions({
  queryKey: keys.organization,
  queryFn: ({ signal }) => calls.getOrganization(signal),
})
export const webhooksQuery = queryOptions({
  queryKey: keys.webhooks,
  queryFn: ({ signal }) => calls.listWebhooks(signal),
  refetchInterval: SETTLED_MS,
})
export const webhookQuery = (webhookId: string) =>
  queryOptions({
    queryKey: [...keys.webhooks, webhookId],
    queryFn: ({ signal }) => calls.getWebhook(webhookId, signal),
    refetchInterval: SETTLED_MS,
  })
/** A test's delivery is over within a second or two, so it is read often while one waits that has not been tried. */
export const deliveriesQuery = (webhookId: string) =>
  infiniteQueryOptions({
    queryKey: [...keys.webhooks, webhookId, 'deliveries'],
    queryFn: ({ pageParam, signal }) => calls.listDeliveries(webhookId, pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor,
    refetchInterval: ({ state }) =>
      state.data?.pages.some((page) => page.items.some((each) => each.status === 'waiting' && each.attempts === 0))
        ? UNSETTLED_MS
        : SETTLED_MS,
  })

export const apiKeysQuery = (owner: string | null) =>
  queryOptions({ queryKey: keys.apiKeys(owner), queryFn: ({ signal }) => calls.listKeys(owner, signal) })

export const quotasQuery = queryOptions({ queryKey: keys.quotas, queryFn: ({ signal }) => calls.listQuotas(signal) })

/** The service's own OpenAPI document. It changes with a release. */
export const contractQuery = queryOptions({
  queryKey: ['contract'],
  queryFn: ({ signal }) => calls.getContract(signal),
  staleTime: Infinity,
})
