import { infiniteQueryOptions, keepPreviousData, queryOptions, skipToken } from '@tanstack/react-query'
import * as calls from '../calls'
import type { EntriesPlace, GuaranteeTerms, Sla } from '../types'
import { keys, SETTLED_MS, SHARES_MS, UNSETTLED, UNSETTLED_MS } from './keys'

export const groupsQuery = (projectId: string) =>
  queryOptions({
    queryKey: keys.groups(projectId),
    queryFn: ({ signal }) => calls.listGroups(projectId, signal),
    refetchInterval: ({ state }) =>
      state.data?.some((group) => UNSETTLED.has(group.status)) ? UNSETTLED_MS * 2 : SETTLED_MS,
  })

/** Use and health of the project's groups, by group. */
export const glanceQuery = (projectId: string) =>
  queryOptions({
    queryKey: [...keys.groups(projectId), 'glance'],
    queryFn: async ({ signal }) =>
      new Map((await calls.glanceAtProject(projectId, signal)).map((each) => [each.group_id, each])),
    refetchInterval: SETTLED_MS,
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

export const entriesQuery = (groupId: string, place: EntriesPlace) =>
  queryOptions({
    queryKey: [...keys.group(groupId), 'entries', place],
    queryFn: ({ signal }) => calls.listEntries(groupId, place, signal),
    placeholderData: keepPreviousData,
    // Others append: a page that is opened again is read again.
    staleTime: 0,
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

/** The price of an SLA, and whether it would be admitted. The last answer stays until the next one arrives. */
export const quoteQuery = (sla: Sla | null) =>
  queryOptions({
    queryKey: ['quote', sla],
    queryFn: sla === null ? skipToken : ({ signal }: { signal: AbortSignal }) => calls.quote(sla, signal),
    staleTime: 10_000,
    placeholderData: keepPreviousData,
    retry: false,
  })
