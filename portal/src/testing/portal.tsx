import { QueryClientProvider } from '@tanstack/react-query'
import { createMemoryHistory, RouterProvider } from '@tanstack/react-router'
import { render } from '@testing-library/react'
import { ACCOUNT } from '#mock/people'
import { api } from '@/api'
import { makeQueryClient } from '@/queryClient'
import { makeRouter } from '@/router'
import { leaveWhenSessionEnds } from '@/session'

export const PRODUCTION = '01990000-0000-7000-8000-000000000001'

/** Renders the whole portal at an address, signed in to the mock service's account by default. */
export async function renderPortal(path: string, { signedIn = true } = {}) {
  if (signedIn) await api.logIn(ACCOUNT)
  const queries = makeQueryClient()
  queries.setDefaultOptions({ queries: { ...queries.getDefaultOptions().queries, retry: false } })
  const router = makeRouter(queries, createMemoryHistory({ initialEntries: [path] }))
  leaveWhenSessionEnds(router, queries)
  render(
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>,
  )
  return router
}
