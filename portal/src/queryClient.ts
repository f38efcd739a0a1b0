import { QueryClient } from '@tanstack/react-query'
import { problemOf } from '@/api'

const RETRIES_MAX = 2

/** Retries only errors that may pass by themselves: no answer at all, or a fault of the service. */
function mayPass(failures: number, error: unknown): boolean {
  const { status } = problemOf(error)
  return failures < RETRIES_MAX && (status === 0 || status >= 500)
}

export function makeQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        retry: mayPass,
        retryDelay: (attempt) => 300 * 2 ** attempt,
        staleTime: 2_000,
        refetchOnWindowFocus: true,
      },
      mutations: { retry: false, networkMode: 'always' },
    },
  })
}
