import * as sdk from '../generated'
import { portalFetch } from '../transport'
import type { AnyKey, ChangedWebhook, NewKey, NewWebhook, QuotaRequest } from '../types'
import { AUDIT_LIMIT, EVENTS_LIMIT, everyPage, throwOnError } from './paging'

export const listAudit = (cursor: string | null, signal: AbortSignal) =>
  sdk.listAuditEvents({ query: { limit: AUDIT_LIMIT, ...(cursor && { cursor }) }, signal, throwOnError })

export const getOrganization = (signal: AbortSignal) => sdk.getOrganization({ signal, throwOnError })
export const closeOrganization = (name: string) => sdk.closeOrganization({ body: { name }, throwOnError })
export const reopenOrganization = () => sdk.reopenOrganization({ throwOnError })
export const exportOrganization = async () =>
  (await sdk.exportOrganization({ throwOnError, parseAs: 'blob' })) as unknown as Blob

export const listWebhooks = (signal: AbortSignal) =>
  everyPage((query) => sdk.listWebhooks({ query, signal, throwOnError }))
export const getWebhook = (webhook_id: string, signal: AbortSignal) =>
  sdk.getWebhook({ path: { webhook_id }, signal, throwOnError })
export const createWebhook = (body: NewWebhook) => sdk.createWebhook({ body, throwOnError })
export const changeWebhook = ({ id, ...body }: ChangedWebhook & { id: string }) =>
  sdk.changeWebhook({ path: { webhook_id: id }, body, throwOnError })
export const deleteWebhook = (webhook_id: string) => sdk.deleteWebhook({ path: { webhook_id }, throwOnError })
export const rotateWebhookSecret = (webhook_id: string, grace_s: number) =>
  sdk.rotateWebhookSecret({ path: { webhook_id }, body: { grace_s }, throwOnError })
export const testWebhook = (webhook_id: string) => sdk.testWebhook({ path: { webhook_id }, throwOnError })
export const listDeliveries = (webhook_id: string, cursor: string | null, signal: AbortSignal) =>
  sdk.listWebhookDeliveries({
    path: { webhook_id },
    query: { limit: EVENTS_LIMIT, ...(cursor && { cursor }) },
    signal,
    throwOnError,
  })
export const resendDelivery = (webhook_id: string, delivery_id: string) =>
  sdk.resendWebhookDelivery({ path: { webhook_id, delivery_id }, throwOnError })
export const replayWebhook = (webhook_id: string, since: string) =>
  sdk.replayWebhook({ path: { webhook_id }, body: { since }, throwOnError })

export const createProject = (name: string) => sdk.createProject({ body: { name }, throwOnError })

export const renameProject = (project_id: string, name: string) =>
  sdk.changeProjectSettings({ path: { project_id }, body: { name }, throwOnError })

export const deleteProject = (project_id: string) => sdk.deleteProject({ path: { project_id }, throwOnError })

/** `owner`: a project's id, or null for the organization itself. */
export const listKeys = (owner: string | null, signal: AbortSignal): Promise<AnyKey[]> =>
  owner === null
    ? everyPage((query) => sdk.listOrganizationKeys({ query, signal, throwOnError }))
    : everyPage((query) => sdk.listKeys({ path: { project_id: owner }, query, signal, throwOnError }))
export const createKey = ({ owner, ...body }: NewKey & { owner: string | null }) =>
  owner === null
    ? sdk.createOrganizationKey({ body, throwOnError })
    : sdk.createKey({ path: { project_id: owner }, body, throwOnError })
export const rotateKey = (key_id: string, grace_s: number) =>
  sdk.rotateKey({ path: { key_id }, body: { grace_s }, throwOnError })
export const revokeKey = (key_id: string) => sdk.revokeKey({ path: { key_id }, throwOnError })

export const requestQuota = (quota: string, body: QuotaRequest) =>
  sdk.requestQuota({ path: { quota }, body, throwOnError })
export const withdrawQuotaRequest = (quota: string) => sdk.withdrawQuotaRequest({ path: { quota }, throwOnError })
export const listQuotas = async (signal: AbortSignal) => (await sdk.getQuotas({ signal, throwOnError })).items

export const getContract = async (signal: AbortSignal): Promise<unknown> =>
  (await portalFetch('/v1/openapi.json', { signal })).json()
