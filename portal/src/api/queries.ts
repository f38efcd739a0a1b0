import { infiniteQueryOptions, keepPreviousData, queryOptions, skipToken } from '@tanstack/react-query'
import * as calls from './calls'
import type { GuaranteeTerms, Sla } from './types'

/**
 * The pages' queries, and how often each is repeated. Every key of a group begins with `['group', id]`, so that one
 * invalidation reaches all of the group's data.
 */
export const keys = {
  me: ['me'] as const,
  groups: (projectId: string) => ['groups', projectId] as const,
  group: (groupId: string) => ['group', groupId] as const,
  guarantee: (projectId: string) => ['guarantee', projectId] as const,
  apiKeys: (projectId: string) => ['keys', projectId] as const,
  quotas: ['quotas'] as const,
  invoices: ['invoices'] as const,
  spend: ['spend'] as const,
  budgets: ['budgets'] as const,
  commitments: ['commitments'] as const,
  sessions: ['sessions'] as const,
  secondFactor: ['second-factor'] as const,
  passkeys: ['passkeys'] as const,
  members: ['members'] as const,
  invitations: ['invitations'] as const,
  audit: ['audit'] as const,
  webhooks: ['webhooks'] as const,
}

const SETTLED_MS = 15_000
/** Groups under placement, repair or deletion are read more often. */
const UNSETTLED_MS = 1_500
/** Shares of a guarantee change each quarter of a second. */
const SHARES_MS = 2_000
const UNSETTLED = new Set<string>(['provisioning', 'deleting', 'degraded', 'paused'])

export const meQuery = queryOptions({
  queryKey: keys.me,
  queryFn: ({ signal }) => calls.me(signal),
  staleTime: 60_000,
})

export const sessionsQuery = queryOptions({
  queryKey: keys.sessions,
  queryFn: ({ signal }) => calls.listSessions(signal),
})
export const secondFactorQuery = queryOptions({
  queryKey: keys.secondFactor,
  queryFn: ({ signal }) => calls.getSecondFactor(signal),
})
export const passkeysQuery = queryOptions({
  queryKey: keys.passkeys,
  queryFn: ({ signal }) => calls.listPasskeys(signal),
})
export const membersQuery = queryOptions({
  queryKey: keys.members,
  queryFn: ({ signal }) => calls.listMembers(signal),
})
export const invitationsQuery = queryOptions({
  queryKey: keys.invitations,
  queryFn: ({ signal }) => calls.listInvitations(signal),
})
export const auditQuery = infiniteQueryOptions({
  queryKey: keys.audit,
  queryFn: ({ pageParam, signal }) => calls.listAudit(pageParam, signal),
  initialPageParam: null as string | null,
  getNextPageParam: (last) => last.next_cursor,
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
/** `token`: the secret of the link; empty: the link was cut short. */
export const invitedQuery = (token: string) =>
  queryOptions({
    queryKey: ['invited', token],
    queryFn: token ? ({ signal }) => calls.lookAtInvitation(token, signal) : skipToken,
    retry: false,
  })

export const groupsQuery = (projectId: string) =>
  queryOptions({
    queryKey: keys.groups(projectId),
    queryFn: ({ signal }) => calls.listGroups(projectId, signal),
    refetchInterval: ({ state }) =>
      state.data?.some((group) => UNSETTLED.has(group.status)) ? UNSETTLED_MS * 2 : SETTLED_MS,
  })

export const guaranteeQuery = (projectId: string) =>
  queryOptions({
    queryKey: [...keys.guarantee(projectId), 'now'],
    queryFn: ({ signal }) => calls.getGuarantee(projectId, signal),
    refetchInterval: ({ state }) => (state.data?.since ? SHARES_MS : SETTLED_MS),
  })

/** `terms` null: there is nothing to ask for. */
export const guaranteeQuoteQuery = (projectId: string, terms: GuaranteeTerms | null) =>
  queryOptions({
    queryKey: [...keys.guarantee(projectId), 'quote', terms],
    queryFn: terms ? ({ signal }) => calls.quoteGuarantee(projectId, terms, signal) : skipToken,
    placeholderData: keepPreviousData,
    staleTime: SETTLED_MS,
    retry: false,
  })

export const groupQuery = (groupId: string) =>
  queryOptions({
    queryKey: [...keys.group(groupId), 'group'],
    queryFn: ({ signal }) => calls.getGroup(groupId, signal),
    refetchInterval: ({ state }) => (state.data && UNSETTLED.has(state.data.status) ? UNSETTLED_MS : SETTLED_MS),
  })

export const costsQuery = (groupId: string) =>
  queryOptions({
    queryKey: [...keys.group(groupId), 'costs'],
    queryFn: ({ signal }) => calls.getCosts(groupId, signal),
  })

export const partitionsQuery = (groupId: string) =>
  queryOptions({
    queryKey: [...keys.group(groupId), 'partitions'],
    queryFn: ({ signal }) => calls.getPartitions(groupId, signal),
    refetchInterval: ({ state }) => (state.data?.is_changing ? UNSETTLED_MS : SETTLED_MS),
  })

export const placementQuery = (groupId: string) =>
  queryOptions({
    queryKey: [...keys.group(groupId), 'placement'],
    queryFn: ({ signal }) => calls.getPlacement(groupId, signal),
    refetchInterval: SETTLED_MS,
  })

export const eventsQuery = (groupId: string) =>
  infiniteQueryOptions({
    queryKey: [...keys.group(groupId), 'events'],
    queryFn: ({ pageParam, signal }) => calls.listEvents(groupId, pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor,
    refetchInterval: SETTLED_MS,
  })

export const metricsQuery = (groupId: string, minutes: number) =>
  queryOptions({
    queryKey: [...keys.group(groupId), 'metrics', minutes],
    queryFn: ({ signal }) => calls.getMetrics(groupId, minutes, signal),
    refetchInterval: 30_000,
    placeholderData: keepPreviousData,
  })

export const slaQuery = (groupId: string, month: string) =>
  queryOptions({
    queryKey: [...keys.group(groupId), 'sla', month],
    queryFn: ({ signal }) => calls.getSla(groupId, month, signal),
    refetchInterval: 60_000,
  })

export const badMinutesQuery = (groupId: string, month: string) =>
  infiniteQueryOptions({
    queryKey: [...keys.group(groupId), 'bad-minutes', month],
    queryFn: ({ pageParam, signal }) => calls.listBadMinutes(groupId, month, pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor,
  })

export const apiKeysQuery = (projectId: string) =>
  queryOptions({ queryKey: keys.apiKeys(projectId), queryFn: ({ signal }) => calls.listKeys(projectId, signal) })

export const quotasQuery = queryOptions({ queryKey: keys.quotas, queryFn: ({ signal }) => calls.listQuotas(signal) })

export const invoicesQuery = queryOptions({
  queryKey: [...keys.invoices, 'list'],
  queryFn: ({ signal }) => calls.listInvoices(signal),
})
export const currentInvoiceQuery = queryOptions({
  queryKey: [...keys.invoices, 'current'],
  queryFn: ({ signal }) => calls.currentInvoice(signal),
  refetchInterval: 30_000,
})
export const invoiceQuery = (invoiceId: string) =>
  queryOptions({
    queryKey: [...keys.invoices, invoiceId],
    queryFn: ({ signal }) => calls.getInvoice(invoiceId, signal),
  })

/** `paidMicros`: what the invoice says; another amount means other entries. */
export const paymentsQuery = (invoiceId: string, paidMicros: number) =>
  queryOptions({
    queryKey: [...keys.invoices, invoiceId, 'payments', paidMicros],
    queryFn: ({ signal }) => calls.listPayments(invoiceId, signal),
    placeholderData: keepPreviousData,
  })

/** Spend changes with each second; the service evaluates budgets each minute. */
const SPEND_MS = 60_000
export const spendQuery = queryOptions({
  queryKey: [...keys.spend, 'month'],
  queryFn: ({ signal }) => calls.getSpend(signal),
  refetchInterval: SPEND_MS,
})
export const spendDaysQuery = queryOptions({
  queryKey: [...keys.spend, 'days'],
  queryFn: ({ signal }) => calls.getSpendDays(signal),
  refetchInterval: SPEND_MS,
})
export const budgetsQuery = queryOptions({
  queryKey: keys.budgets,
  queryFn: ({ signal }) => calls.listBudgets(signal),
  refetchInterval: SPEND_MS,
})

export const commitmentsQuery = queryOptions({
  queryKey: keys.commitments,
  queryFn: ({ signal }) => calls.listCommitments(signal),
})

/** The service reads its status anew each ten seconds, and measures it twice a minute. */
const STATUS_MS = 30_000
export const statusQuery = queryOptions({
  queryKey: ['status'],
  queryFn: ({ signal }) => calls.getStatus(signal),
  refetchInterval: STATUS_MS,
})

/** The price of an SLA, and whether it would be admitted. The last answer stays until the next one arrives. */
export const quoteQuery = (sla: Sla | null) =>
  queryOptions({
    queryKey: ['quote', sla],
    queryFn: sla === null ? skipToken : ({ signal }: { signal: AbortSignal }) => calls.quote(sla, signal),
    staleTime: 10_000,
    placeholderData: keepPreviousData,
    retry: false,
  })
