import { screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { expect, it } from 'vitest'
import { database } from '#mock/db'
import type { Group } from '@/api'
import { PRODUCTION, renderPortal } from '@/testing/portal'
import { changesOf, hindranceOf, quotedSla, valuesOf } from './resize'

function orders(): Group {
  const found = database().groups.find(({ group }) => group.name === 'orders')
  if (!found) throw new Error('the mock has a group "orders"')
  return found.group
}

it('sends changed values alone', () => {
  const values = { ...valuesOf(orders()), rate_per_s: 7_000, min_replicas: 3 }
  expect(changesOf(orders(), values)).toEqual({ rate_per_s: 7_000, min_replicas: 3 })
  expect(changesOf(orders(), valuesOf(orders()))).toEqual({})
})

it('asks for a quote that does not count the group against itself', () => {
  const group = orders()
  const values = { ...valuesOf(group), rate_per_s: 7_000 }
  expect(quotedSla(group, values)).toMatchObject({ rate_per_s: 7_000, replaces_group_id: group.id, partitions: 1 })
  expect(quotedSla(group, { ...values, rate_per_s: Number.NaN })).toBeNull()
})

it('says why a group cannot be resized', () => {
  expect(hindranceOf(orders())).toBeUndefined()
  expect(hindranceOf({ ...orders(), partition_of: orders().id })).toMatch(/is a partition/)
  expect(hindranceOf({ ...orders(), status: 'lost' })).toMatch(/Reset it first/)
})

it('resizes a group with the price in view', async () => {
  const { id, price } = orders()
  const router = await renderPortal(`/projects/${PRODUCTION}/groups/${id}/resize`)
  const rate = await screen.findByLabelText('Rate to reserve')
  expect(rate).toHaveValue(5_000)
  expect(await screen.findByText('As much as now.')).toBeInTheDocument()
  expect(screen.getByRole('button', { name: 'Resize group' })).toHaveAttribute('aria-disabled', 'true')
  await userEvent.clear(rate)
  await userEvent.type(rate, '8000')
  expect(await screen.findByText(/more than now\./)).toBeInTheDocument()
  await userEvent.click(screen.getByRole('button', { name: 'Resize group' }))
  await waitFor(() => expect(router.state.location.pathname).toMatch(/\/settings$/))
  expect(orders().sla.rate_per_s).toBe(8_000)
  expect(orders().price.monthly_micros).toBeGreaterThan(price.monthly_micros)
})

it('offers an SLA that fits in the place of one that does not', async () => {
  const { id } = orders()
  await renderPortal(`/projects/${PRODUCTION}/groups/${id}/resize`)
  const rate = await screen.findByLabelText('Rate to reserve')
  await userEvent.clear(rate)
  await userEvent.type(rate, '9000000')
  await userEvent.click(await screen.findByRole('button', { name: 'Use an SLA that fits' }))
  expect(await screen.findByText('We can promise this')).toBeInTheDocument()
  expect(rate).toHaveValue(250_000)
})
