import type { QueryClient } from '@tanstack/react-query'
import { createRouter, type RouterHistory } from '@tanstack/react-router'
import { app } from './routes/app'
import { docsTree } from './routes/docs'
import { operatorTree } from './routes/operator'
import { organization } from './routes/organization'
import { projectTree } from './routes/project'
import { root } from './routes/root'
import { strangers } from './routes/strangers'

const tree = root.addChildren([
  ...strangers,
  docsTree,
  ...operatorTree,
  app.addChildren([projectTree, ...organization]),
])

export function makeRouter(queries: QueryClient, history?: RouterHistory) {
  return createRouter({
    routeTree: tree,
    context: { queries },
    ...(history ? { history } : {}),
    defaultPreload: 'intent',
    scrollRestoration: true,
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof makeRouter>
  }
}
