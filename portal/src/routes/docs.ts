import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { root } from './root'

const docs = createRoute({
  getParentRoute: () => root,
  path: '/docs',
  component: lazyRouteComponent(() => import('@/pages/docs/DocsShell'), 'DocsShell'),
})
const start = createRoute({
  getParentRoute: () => docs,
  path: '/',
  component: lazyRouteComponent(() => import('@/pages/docs/DocsPage'), 'DocsPage'),
})
const reference = createRoute({
  getParentRoute: () => docs,
  path: '/api',
  component: lazyRouteComponent(() => import('@/pages/docs/api/ReferencePage'), 'ReferencePage'),
})
const guide = createRoute({
  getParentRoute: () => docs,
  path: '/$guide',
  component: lazyRouteComponent(() => import('@/pages/docs/GuidePage'), 'GuidePage'),
})

/** The documentation, for strangers, too. */
export const docsTree = docs.addChildren([start, reference, guide])
