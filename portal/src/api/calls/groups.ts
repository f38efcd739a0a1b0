import * as sdk from '../generated'
import type { EntriesPlace, GroupSettings, GuaranteeTerms, NewGroup, Resize, Sla } from '../types'
import { EVENTS_LIMIT, everyPage, throwOnError } from './paging'

export const getGuarantee = (project_id: string, signal: AbortSignal) =>
  sdk.getGuarantee({ path: { project_id }, signal, throwOnError })
export const putGuarantee = (project_id: string, body: GuaranteeTerms) =>
  sdk.putGuarantee({ path: { project_id }, body, throwOnError })
export const deleteGuarantee = (project_id: string) => sdk.deleteGuarantee({ path: { project_id }, throwOnError })
export const quoteGuarantee = (project_id: string, body: GuaranteeTerms, signal: AbortSignal) =>
  sdk.quoteGuarantee({ path: { project_id }, body, signal, throwOnError })

export const quote = (body: Sla, signal: AbortSignal) => sdk.createQuote({ body, signal, throwOnError })

export const listGroups = (project_id: string, signal: AbortSignal) =>
  everyPage((query) => sdk.listGroups({ path: { project_id }, query, signal, throwOnError }))
export const glanceAtProject = async (project_id: string, signal: AbortSignal) =>
  (await sdk.glanceAtProject({ path: { project_id }, signal, throwOnError })).items
export const createGroup = (project_id: string, body: NewGroup) =>
  sdk.createGroup({ path: { project_id }, body, throwOnError })
export const getGroup = (group_id: string, signal: AbortSignal) =>
  sdk.getGroup({ path: { group_id }, signal, throwOnError })
export const deleteGroup = (group_id: string) => sdk.deleteGroup({ path: { group_id }, throwOnError })
export const resetGroup = (group_id: string, epoch: number) =>
  sdk.resetGroup({ path: { group_id }, body: { epoch }, throwOnError })
export const settleGroup = (group_id: string, body: GroupSettings) =>
  sdk.changeGroupSettings({ path: { group_id }, body, throwOnError })
export const resizeGroup = (group_id: string, body: Resize) =>
  sdk.resizeGroup({ path: { group_id }, body, throwOnError })
export const getPartitions = (group_id: string, signal: AbortSignal) =>
  sdk.getPartitions({ path: { group_id }, signal, throwOnError })
export const getCosts = (group_id: string, signal: AbortSignal) =>
  sdk.getGroupCosts({ path: { group_id }, signal, throwOnError })
export const getPlacement = (group_id: string, signal: AbortSignal) =>
  sdk.getPlacement({ path: { group_id }, signal, throwOnError })
export const listEntries = (group_id: string, query: EntriesPlace, signal: AbortSignal) =>
  sdk.listEntries({ path: { group_id }, query, signal, throwOnError })
/** The address of an entry's bytes, which the browser saves. */
export const entryFile = (group_id: string, offset: number, partition: number) =>
  `/v1/groups/${group_id}/entries/${offset}?partition=${partition}`
export const listEvents = (group_id: string, cursor: string | null, signal: AbortSignal) =>
  sdk.listGroupEvents({
    path: { group_id },
    query: { limit: EVENTS_LIMIT, ...(cursor === null ? {} : { cursor }) },
    signal,
    throwOnError,
  })
export const getMetrics = (group_id: string, minutes: number, signal: AbortSignal) =>
  sdk.getMetrics({ path: { group_id }, query: { minutes }, signal, throwOnError })
export const getSla = (group_id: string, month: string, signal: AbortSignal) =>
  sdk.getSlaReport({ path: { group_id }, query: { month }, signal, throwOnError })
export const listBadMinutes = (group_id: string, month: string, cursor: string | null, signal: AbortSignal) =>
  sdk.listBadMinutes({
    path: { group_id },
    query: { month, limit: EVENTS_LIMIT, ...(cursor === null ? {} : { cursor }) },
    signal,
    throwOnError,
  })
