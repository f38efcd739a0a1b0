import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { setCsrfToken, setSignedOutHandler } from '@/api'
import { makeQueryClient } from './queryClient'
import { makeRouter } from './router'
import './styles/app.css'

async function start(): Promise<void> {
  if (import.meta.env.MODE === 'mock') await (await import('#mock/browser')).startMock()

  const queries = makeQueryClient()
  const router = makeRouter(queries)
  setSignedOutHandler(() => {
    const { pathname, href } = router.state.location
    if (pathname === '/login') return
    setCsrfToken(null)
    queries.clear()
    void router.navigate({ to: '/login', search: { next: href, expired: true } })
  })

  const root = document.getElementById('root')
  if (!root) throw new Error('index.html has no element #root')
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  )
}

void start()
