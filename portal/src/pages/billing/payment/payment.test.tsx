import { screen } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { http, HttpResponse } from 'msw'
import { expect, it } from 'vitest'
import { database } from '#mock/db'
import { server } from '#mock/server'
import type { Payment, PaymentEntry } from '@/api'
import { renderPortal } from '@/testing/portal'
import { dueText, history } from './words'

const OVERDUE = '01990000-0000-7000-8000-000000000029'
const PAYMENT: Payment = {
  state: 'open',
  provider: 'manual',
  due_at: '2026-12-15T06:00:00Z',
  payable_micros: 30_000_000,
  paid_micros: 0,
  written_off_micros: 0,
  due_micros: 30_000_000,
  overpaid_micros: 0,
  reminders: [],
}
const ENTRY: PaymentEntry = {
  id: 'e1',
  kind: 'payment',
  provider: 'manual',
  reference: 'BANK-1',
  amount_micros: 10_000_000,
  reverses_id: null,
  at: '2026-12-20T00:00:00Z',
}

it('says what is due, and by when', () => {
  expect(dueText(PAYMENT, 'USD')).toBe('$30.00 by Dec 15, 2026')
  expect(dueText({ ...PAYMENT, state: 'overdue' }, 'USD')).toBe('$30.00 since Dec 15, 2026')
  expect(dueText({ ...PAYMENT, due_at: null }, 'USD')).toBe('$30.00')
  expect(dueText({ ...PAYMENT, state: 'paid', due_micros: 0 }, 'USD')).toBe('')
})

it('puts payments and reminders in one order, and reversals with a minus', () => {
  const due_at = '2026-12-15T06:00:00Z'
  const reminder = { id: 'r1', stage: 'final_notice' as const, due_micros: 1, due_at, at: '2026-12-21T00:00:00Z' }
  const reversal = { ...ENTRY, id: 'e2', kind: 'reversal' as const, reverses_id: 'e1', at: '2026-12-22T00:00:00Z' }
  const happened = history({ ...PAYMENT, reminders: [reminder] }, [reversal, ENTRY], 'USD')
  expect(happened.map(({ text, micros }) => [text, micros])).toEqual([
    ['Reversal', -10_000_000],
    ['Final notice', null],
    ['Payment', 10_000_000],
  ])
})

it('says where to transfer what is due', async () => {
  const invoice = database().invoices.find(({ id }) => id === OVERDUE)
  if (!invoice) throw new Error('the seed has it')
  invoice.payment = PAYMENT
  server.use(
    http.post('/v1/invoices/:id/checkout', () =>
      HttpResponse.json({
        provider: 'manual',
        amount_micros: 30_000_000,
        currency: 'USD',
        reference: 'INV-2026-000002',
        instructions: ['Quorate Cloud GmbH', 'IBAN DE00 0000'],
        url: null,
        expires_at: null,
      }),
    ),
  )
  await renderPortal(`/invoices/${OVERDUE}`)
  await userEvent.click(await screen.findByRole('button', { name: 'How to pay' }))
  const shown = await screen.findByText('IBAN DE00 0000')
  expect(shown.parentElement).toHaveTextContent('$30.00,')
  expect(screen.queryByRole('button', { name: /by card/ })).not.toBeInTheDocument()
})

it('does not offer to pay again what is being confirmed', async () => {
  await renderPortal(`/invoices/${OVERDUE}?paid=true`)
  expect(await screen.findByText('Thank you. Your payment is being confirmed.')).toBeInTheDocument()
  expect(screen.queryByRole('button', { name: /by card/ })).not.toBeInTheDocument()
})
