import { http, HttpResponse } from 'msw'
import { database, persist } from '../db'
import { pay } from '../payments'
import { notFound, page, problem, refuseStranger } from '../reply'

const invoiceById = (id: unknown) => database().invoices.find((each) => each.id === id)

const listPayments = http.get('/v1/invoices/:id/payments', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  return invoiceById(params.id) ? page(database().payments[String(params.id)] ?? [], request) : notFound('invoice')
})

/** The provider's page is the invoice itself, to which it leads back: the payment has arrived by then. */
const checkOut = http.post('/v1/invoices/:id/checkout', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const invoice = invoiceById(params.id)
  if (!invoice?.payment) return notFound('invoice')
  const { provider, due_micros } = invoice.payment
  if (due_micros === 0) return problem('nothing_due', 'Nothing is left to pay.')
  const answer = {
    provider,
    amount_micros: due_micros,
    currency: invoice.currency,
    reference: invoice.number ?? '',
    instructions: [],
    url: `/invoices/${invoice.id}?paid=true`,
    expires_at: new Date(Date.now() + 3_600_000).toISOString(),
  }
  pay(database(), invoice, Date.now())
  persist()
  return HttpResponse.json(answer)
})

export const paying = [listPayments, checkOut]
