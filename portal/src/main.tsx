import './jitless'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { resumeView } from './pages/view/view'
import { makeQueryClient } from './queryClient'
import { makeRouter } from './router'
import { leaveWhenSessionEnds } from './session'
import './styles/app.css'

async function start(): Promise<void> {
  if (import.meta.env.MODE === 'mock') await (await import('#mock/browser')).startMock()

  resumeView()
  const queries = makeQueryClient()
  const router = makeRouter(queries)
  leaveWhenSessionEnds(router, queries)

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
