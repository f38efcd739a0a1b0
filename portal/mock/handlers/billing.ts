import { http, HttpResponse } from 'msw'
import { database } from '../db'
import { invoiceOf } from '../invoices'
import { notFound, page, refuseStranger } from '../reply'

const listInvoices = http.get(
  '/v1/invoices',
  ({ request }) =>
    refuseStranger(request) ??
    page(
      database().invoices.map(({ lines: _lines, taxes: _taxes, ...head }) => head),
      request,
    ),
)

const currentInvoice = http.get('/v1/invoices/current', ({ request }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const now = new Date()
  const start = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1)
  const end = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)
  return HttpResponse.json(invoiceOf(null, null, start, end, now.getTime(), database().groups, 'open'))
})

const getInvoice = http.get('/v1/invoices/:id', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const invoice = database().invoices.find((each) => each.id === params.id)
  return invoice ? HttpResponse.json(invoice) : notFound('invoice')
})

/** A PDF without pages, and the amounts alone: what matters here is that files arrive. */
const documents = ['/v1/invoices/current', '/v1/invoices/:id'].flatMap((invoice) => [
  http.get(
    `${invoice}/document.pdf`,
    ({ request }) =>
      refuseStranger(request) ??
      new HttpResponse('%PDF-1.7\n%%EOF\n', { headers: { 'content-type': 'application/pdf' } }),
  ),
  http.get(`${invoice}/lines.csv`, ({ request, params }) => {
    const refusal = refuseStranger(request)
    if (refusal) return refusal
    const lines = database().invoices.find((each) => each.id === params.id)?.lines ?? []
    const rows = ['group,amount_micros', ...lines.map((line) => `${line.group_name},${line.amount_micros}`)]
    return new HttpResponse(rows.join('\r\n'), { headers: { 'content-type': 'text/csv; charset=utf-8' } })
  }),
])

export const billing = [listInvoices, currentInvoice, getInvoice, ...documents]
