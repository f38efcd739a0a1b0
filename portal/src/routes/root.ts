import type { QueryClient } from '@tanstack/react-query'
import { createRootRouteWithContext, Outlet } from '@tanstack/react-router'
import { CrashPage, NotFoundPage } from '@/pages/Fallbacks'

export interface Context {
  queries: QueryClient
}

export const root = createRootRouteWithContext<Context>()({
  component: Outlet,
  errorComponent: CrashPage,
  notFoundComponent: NotFoundPage,
})
