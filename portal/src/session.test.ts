import { screen } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { expect, it } from 'vitest'
import { database } from '#mock/db'
import { PRODUCTION, renderPortal } from '@/testing/portal'

it('leads to the login when the session ends, and back', async () => {
  const path = `/projects/${PRODUCTION}/keys`
  const router = await renderPortal(path)
  await screen.findByText('nightly export')
  database().session = null
  await userEvent.click(screen.getByRole('link', { name: 'Quotas' }))
  expect(await screen.findByText('Your session is over')).toBeInTheDocument()
  expect(router.state.location.search).toMatchObject({ next: '/quotas', expired: true })
})
