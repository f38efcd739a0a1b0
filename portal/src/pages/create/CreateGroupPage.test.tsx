import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { expect, it } from 'vitest'
import { PRODUCTION, renderPortal } from '@/testing/portal'
import { differences, slaOf, DEFAULTS } from './slaForm'

const PATH = `/projects/${PRODUCTION}/groups/new`

it('prices the SLA while it is typed', async () => {
  await renderPortal(PATH)
  expect(await screen.findByText('We can promise this')).toBeInTheDocument()
  const before = screen.getByTestId('monthly-price').textContent
  await userEvent.click(screen.getByRole('radio', { name: '5' }))
  await waitFor(() => expect(screen.getByTestId('monthly-price').textContent).not.toBe(before))
})

it('adopts an SLA that fits with one press', async () => {
  await renderPortal(PATH)
  const rate = await screen.findByLabelText('Rate to reserve')
  await userEvent.clear(rate)
  await userEvent.type(rate, '9000000')
  await userEvent.click(await screen.findByRole('button', { name: 'Use an SLA that fits' }))
  expect(await screen.findByText('We can promise this')).toBeInTheDocument()
  expect(rate).toHaveValue(250_000)
})

it('keeps the typed values when the service fails', async () => {
  await renderPortal(PATH)
  await userEvent.type(await screen.findByLabelText('Name'), 'fail-503')
  await screen.findByText('We can promise this')
  await userEvent.click(screen.getByRole('button', { name: 'Create group' }))
  expect(await screen.findByRole('alert')).toHaveTextContent('The coordinator does not answer')
  expect(screen.getByLabelText('Name')).toHaveValue('fail-503')
})

it('knows an SLA from a half-typed one', () => {
  expect(slaOf({ ...DEFAULTS, rate_per_s: Number.NaN })).toBeNull()
  expect(slaOf({ ...DEFAULTS, request_size_bytes: 0 })).toBeNull()
  expect(slaOf(DEFAULTS)).toMatchObject({ rate_per_s: 5_000, min_replicas: null })
})

it('says what another SLA changes', () => {
  const sla = slaOf(DEFAULTS)
  if (!sla) throw new Error('the defaults are an SLA')
  expect(differences(sla, { ...sla, rate_per_s: 1_200, replication_degree: 1 })).toEqual([
    '1,200 requests/s',
    '1 replica',
  ])
})
