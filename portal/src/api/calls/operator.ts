import * as sdk from '../generated'
import type { NewIncident, NewJoinToken, NewUpdate } from '../types'
import { AUDIT_LIMIT, throwOnError } from './paging'

/** Calls of the fleet's operators; `setOperatorToken` comes first. */
export const getOperator = (signal?: AbortSignal) => sdk.getOperator({ ...(signal && { signal }), throwOnError })

export const listServers = async (signal: AbortSignal) => (await sdk.listServers({ signal, throwOnError })).items
export const drainServer = (server_id: number) => sdk.drainServer({ path: { server_id }, throwOnError })
export const callOffDrain = (server_id: number) => sdk.callOffDrain({ path: { server_id }, throwOnError })
export const giveUpServer = (server_id: number) => sdk.giveUpServer({ path: { server_id }, throwOnError })
export const getCapacity = (signal: AbortSignal) => sdk.getCapacity({ signal, throwOnError })

export const listJoinTokens = async (signal: AbortSignal) => (await sdk.listJoinTokens({ signal, throwOnError })).items
export const createJoinToken = (body: NewJoinToken) => sdk.createJoinToken({ body, throwOnError })
export const revokeJoinToken = (token_id: string) => sdk.revokeJoinToken({ path: { token_id }, throwOnError })

export const listOrganizations = (search: string, cursor: string | null, signal: AbortSignal) =>
  sdk.listOrganizations({
    query: { limit: AUDIT_LIMIT, ...(search && { search }), ...(cursor && { cursor }) },
    signal,
    throwOnError,
  })
export const suspendOrganization = (organization_id: string, reason: string) =>
  sdk.suspendOrganization({ path: { organization_id }, body: { reason }, throwOnError })
export const endSuspension = (organization_id: string) => sdk.endSuspension({ path: { organization_id }, throwOnError })

export const listLending = (cursor: string | null, signal: AbortSignal) =>
  sdk.listLending({ query: { limit: AUDIT_LIMIT, ...(cursor && { cursor }) }, signal, throwOnError })
export const getSharing = (signal: AbortSignal) => sdk.getSharing({ signal, throwOnError })

export const openIncident = (body: NewIncident) => sdk.openIncident({ body, throwOnError })
export const updateIncident = (incident_id: string, body: NewUpdate) =>
  sdk.updateIncident({ path: { incident_id }, body, throwOnError })

export const listOperatorEvents = (cursor: string | null, signal: AbortSignal) =>
  sdk.listOperatorEvents({ query: { limit: AUDIT_LIMIT, ...(cursor && { cursor }) }, signal, throwOnError })
export const exportOperatorLog = async () =>
  (await sdk.exportOperatorLog({ throwOnError, parseAs: 'blob' })) as unknown as Blob
