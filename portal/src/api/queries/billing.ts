import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import * as calls from '../calls'
import { keys } from './keys'

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
