import * as sdk from '../generated'
import type { NewCorrection, NewIncident, NewJoinToken, NewPaymentEntry, NewUpdate } from '../types'
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
export const listGuarantees = async (signal: AbortSignal) => (await sdk.listGuarantees({ signal, throwOnError })).items
export const getBalance = (signal: AbortSignal) => sdk.getBalance({ signal, throwOnError })
export const moveReplica = (group_id: string, from_server: number, to_server: number | null) =>
  sdk.moveReplica({ path: { group_id }, body: { from_server, to_server }, throwOnError })
export const getSharing = (signal: AbortSignal) => sdk.getSharing({ signal, throwOnError })

export const openIncident = (body: NewIncident) => sdk.openIncident({ body, throwOnError })
export const updateIncident = (incident_id: string, body: NewUpdate) =>
  sdk.updateIncident({ path: { incident_id }, body, throwOnError })

export const listOperatorEvents = (cursor: string | null, signal: AbortSignal) =>
  sdk.listOperatorEvents({ query: { limit: AUDIT_LIMIT, ...(cursor && { cursor }) }, signal, throwOnError })
export const exportOperatorLog = async () =>
  (await sdk.exportOperatorLog({ throwOnError, parseAs: 'blob' })) as unknown as Blob

export const listHosted = (server_id: number, cursor: string | null, signal: AbortSignal) =>
  sdk.listHostedReplicas({
    path: { server_id },
    query: { limit: AUDIT_LIMIT, ...(cursor && { cursor }) },
    signal,
    throwOnError,
  })
export const listAdmissions = (outcome: 'refused' | null, cursor: string | null, signal: AbortSignal) =>
  sdk.listAdmissions({
    query: { limit: AUDIT_LIMIT, ...(outcome && { outcome }), ...(cursor && { cursor }) },
    signal,
    throwOnError,
  })
export const countAdmissions = (hours: number, signal: AbortSignal) =>
  sdk.countAdmissions({ query: { hours }, signal, throwOnError })

export const getOrganizationQuotas = async (organization_id: string, signal: AbortSignal) =>
  (await sdk.getOrganizationQuotas({ path: { organization_id }, signal, throwOnError })).items
export const setQuota = (organization_id: string, quota: string, limit: number) =>
  sdk.setOrganizationQuota({ path: { organization_id, quota }, body: { limit }, throwOnError })
export const resetQuota = (organization_id: string, quota: string) =>
  sdk.resetOrganizationQuota({ path: { organization_id, quota }, throwOnError })
export const declineQuota = (organization_id: string, quota: string, reason: string) =>
  sdk.declineQuotaRequest({ path: { organization_id, quota }, body: { reason }, throwOnError })
export const listQuotaRequests = async (signal: AbortSignal) =>
  (await sdk.listQuotaRequests({ signal, throwOnError })).items
export const viewOrganization = (organization_id: string, reason: string) =>
  sdk.viewOrganization({ path: { organization_id }, body: { reason }, throwOnError })

export const findInvoices = async (number: string, signal: AbortSignal) =>
  (await sdk.findInvoices({ query: { number }, signal, throwOnError })).items
export const getInvoiceAccount = (invoice_id: string, signal: AbortSignal) =>
  sdk.getInvoiceAccount({ path: { invoice_id }, signal, throwOnError })
export const recordPayment = (invoice_id: string, body: NewPaymentEntry) =>
  sdk.recordPayment({ path: { invoice_id }, body, throwOnError })
export const listCorrections = (group_id: string, cursor: string | null, signal: AbortSignal) =>
  sdk.listCorrections({
    path: { group_id },
    query: { limit: AUDIT_LIMIT, ...(cursor && { cursor }) },
    signal,
    throwOnError,
  })
export const createCorrection = (group_id: string, body: NewCorrection) =>
  sdk.createCorrection({ path: { group_id }, body, throwOnError })
export const listPrices = (signal: AbortSignal) => sdk.listPrices({ signal, throwOnError })
