import * as sdk from '../generated'
import type { NewBudget, NewCommitment } from '../types'
import { everyPage, throwOnError } from './paging'

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
