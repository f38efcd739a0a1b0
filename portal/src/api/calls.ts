import * as sdk from './generated'
import { setCsrfToken } from './transport'
import type {
  Acceptance,
  ChangedWebhook,
  Confirmation,
  GuaranteeTerms,
  Login,
  NewBudget,
  NewCommitment,
  NewGroup,
  NewInvitation,
  NewKey,
  NewWebhook,
  Resize,
  Role,
  Sla,
} from './types'

/**
 * The calls of the contract as the portal uses them: each resolves with the answer's body or throws a
 * ProblemError. Only this module uses the generated client.
 */
const PAGE_LIMIT = 200
/** Quotas keep every list far below this. The bound stops an endless chain of cursors. */
const PAGES_MAX = 50
const EVENTS_LIMIT = 20
const AUDIT_LIMIT = 50

const throwOnError = true

interface Page<T> {
  items: T[]
  next_cursor: string | null
}

async function everyPage<T>(read: (query: { limit: number; cursor?: string }) => Promise<Page<T>>): Promise<T[]> {
  const items: T[] = []
  let cursor: string | null = null
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const answer: Page<T> = await read({ limit: PAGE_LIMIT, ...(cursor === null ? {} : { cursor }) })
    items.push(...answer.items)
    cursor = answer.next_cursor
    if (cursor === null) break
  }
  return items
}

/** Every answer about a session brings the token for later changes. */
function remember<R extends { csrf_token: string | null }>(session: R): R {
  setCsrfToken(session.csrf_token)
  return session
}

export const signUp = async (body: { email: string; password: string; organization: string }) =>
  remember(await sdk.signUp({ body, throwOnError }))
export const logIn = async (body: Login) => remember(await sdk.logIn({ body, throwOnError }))
export const logOut = async () => {
  await sdk.logOut({ throwOnError })
  setCsrfToken(null)
}
export const me = async (signal: AbortSignal) => remember(await sdk.getMe({ signal, throwOnError }))

export const switchOrganization = async (organization_id: string) =>
  remember(await sdk.switchOrganization({ body: { organization_id }, throwOnError }))
export const sendVerification = () => sdk.sendVerification({ throwOnError })
export const verifyEmail = (token: string) => sdk.verifyEmail({ body: { token }, throwOnError })
export const requestPasswordReset = (email: string) => sdk.requestPasswordReset({ body: { email }, throwOnError })
export const resetPassword = (body: { token: string; password: string }) => sdk.resetPassword({ body, throwOnError })
export const changePassword = (body: { password: string; new_password: string }) =>
  sdk.changePassword({ body, throwOnError })
export const confirmPerson = (body: Confirmation) => sdk.confirmPerson({ body, throwOnError })
export const listSessions = (signal: AbortSignal) => sdk.listSessions({ signal, throwOnError })
export const endSession = (session_id: string) => sdk.endSession({ path: { session_id }, throwOnError })
export const endOtherSessions = () => sdk.endOtherSessions({ throwOnError })
export const getSecondFactor = (signal: AbortSignal) => sdk.getSecondFactor({ signal, throwOnError })
export const beginTotp = () => sdk.beginTotp({ throwOnError })
export const confirmTotp = (code: string) => sdk.confirmTotp({ body: { code }, throwOnError })
export const removeTotp = () => sdk.removeTotp({ throwOnError })
export const renewRecoveryCodes = () => sdk.renewRecoveryCodes({ throwOnError })

export const listPasskeys = async (signal: AbortSignal) => (await sdk.listPasskeys({ signal, throwOnError })).items
export const beginPasskey = () => sdk.beginPasskey({ throwOnError })
export const addPasskey = (name: string, credential: Record<string, unknown>) =>
  sdk.addPasskey({ body: { name, credential }, throwOnError })
export const removePasskey = (passkey_id: string) => sdk.removePasskey({ path: { passkey_id }, throwOnError })
export const askForPasskey = () => sdk.askForPasskey({ throwOnError })
export const logInWithPasskey = async (credential: Record<string, unknown>) =>
  remember(await sdk.logInWithPasskey({ body: { credential }, throwOnError }))

export const listMembers = async (signal: AbortSignal) => (await sdk.listMembers({ signal, throwOnError })).items
export const changeRole = (user_id: string, role: Role) =>
  sdk.changeRole({ path: { user_id }, body: { role }, throwOnError })
export const removeMember = (user_id: string) => sdk.removeMember({ path: { user_id }, throwOnError })
export const listInvitations = async (signal: AbortSignal) =>
  (await sdk.listInvitations({ signal, throwOnError })).items
export const inviteMember = (body: NewInvitation) => sdk.inviteMember({ body, throwOnError })
export const withdrawInvitation = (invitation_id: string) =>
  sdk.withdrawInvitation({ path: { invitation_id }, throwOnError })
export const lookAtInvitation = (token: string, signal: AbortSignal) =>
  sdk.lookAtInvitation({ body: { token }, signal, throwOnError })
export const acceptInvitation = async (token: string) =>
  remember(await sdk.acceptInvitation({ body: { token }, throwOnError }))
export const beginFirstPasskey = (token: string) => sdk.beginFirstPasskey({ body: { token }, throwOnError })
export const acceptInvitationAsNew = async (body: Acceptance) =>
  remember(await sdk.acceptInvitationAsNew({ body, throwOnError }))

export const listAudit = (cursor: string | null, signal: AbortSignal) =>
  sdk.listAuditEvents({ query: { limit: AUDIT_LIMIT, ...(cursor && { cursor }) }, signal, throwOnError })

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

export const deleteProject = (project_id: string) => sdk.deleteProject({ path: { project_id }, throwOnError })

export const listKeys = (project_id: string, signal: AbortSignal) =>
  everyPage((query) => sdk.listKeys({ path: { project_id }, query, signal, throwOnError }))
export const createKey = ({ projectId, ...body }: NewKey & { projectId: string }) =>
  sdk.createKey({ path: { project_id: projectId }, body, throwOnError })
export const rotateKey = (key_id: string, grace_s: number) =>
  sdk.rotateKey({ path: { key_id }, body: { grace_s }, throwOnError })
export const revokeKey = (key_id: string) => sdk.revokeKey({ path: { key_id }, throwOnError })

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
export const createGroup = (project_id: string, body: NewGroup) =>
  sdk.createGroup({ path: { project_id }, body, throwOnError })
export const getGroup = (group_id: string, signal: AbortSignal) =>
  sdk.getGroup({ path: { group_id }, signal, throwOnError })
export const deleteGroup = (group_id: string) => sdk.deleteGroup({ path: { group_id }, throwOnError })
export const resetGroup = (group_id: string, epoch: number) =>
  sdk.resetGroup({ path: { group_id }, body: { epoch }, throwOnError })
export const resizeGroup = (group_id: string, body: Resize) =>
  sdk.resizeGroup({ path: { group_id }, body, throwOnError })
export const getPartitions = (group_id: string, signal: AbortSignal) =>
  sdk.getPartitions({ path: { group_id }, signal, throwOnError })
export const getCosts = (group_id: string, signal: AbortSignal) =>
  sdk.getGroupCosts({ path: { group_id }, signal, throwOnError })
export const getPlacement = (group_id: string, signal: AbortSignal) =>
  sdk.getPlacement({ path: { group_id }, signal, throwOnError })
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

export const listInvoices = (signal: AbortSignal) =>
  everyPage((query) => sdk.listInvoices({ query, signal, throwOnError }))
export const currentInvoice = (signal: AbortSignal) => sdk.getCurrentInvoice({ signal, throwOnError })
export const getInvoice = (invoice_id: string, signal: AbortSignal) =>
  sdk.getInvoice({ path: { invoice_id }, signal, throwOnError })

export const listPayments = (invoice_id: string, signal: AbortSignal) =>
  everyPage((query) => sdk.listPayments({ path: { invoice_id }, query, signal, throwOnError }))
/** The way to pay what is due now. */
export const checkOut = (invoice_id: string) => sdk.checkOut({ path: { invoice_id }, throwOnError })

export type InvoiceFile = 'pdf' | 'csv'

/** A file of an issued invoice, or of the open one (null). */
export async function invoiceFile(invoice_id: string | null, kind: InvoiceFile): Promise<Blob> {
  const options = { throwOnError, parseAs: 'blob' } as const
  const file = await (invoice_id === null
    ? kind === 'pdf'
      ? sdk.getCurrentInvoiceDocument(options)
      : sdk.getCurrentInvoiceLines(options)
    : kind === 'pdf'
      ? sdk.getInvoiceDocument({ ...options, path: { invoice_id } })
      : sdk.getInvoiceLines({ ...options, path: { invoice_id } }))
  return file as Blob
}

export const getSpend = (signal: AbortSignal) => sdk.getSpend({ signal, throwOnError })
export const getSpendDays = (signal: AbortSignal) => sdk.getSpendDays({ signal, throwOnError })
export const listBudgets = (signal: AbortSignal) =>
  everyPage((query) => sdk.listBudgets({ query, signal, throwOnError }))
export const putBudget = (body: NewBudget) => sdk.putBudget({ body, throwOnError })
export const listCommitments = (signal: AbortSignal) => sdk.listCommitments({ signal, throwOnError })
export const makeCommitment = (body: NewCommitment) => sdk.makeCommitment({ body, throwOnError })
export const deleteBudget = (budget_id: string) => sdk.deleteBudget({ path: { budget_id }, throwOnError })
/** The public status. It needs no session. */
export const getStatus = (signal: AbortSignal) => sdk.getStatus({ signal, throwOnError })
export const listQuotas = async (signal: AbortSignal) => (await sdk.getQuotas({ signal, throwOnError })).items
