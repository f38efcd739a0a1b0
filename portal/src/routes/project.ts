import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { z } from 'zod'
import { rememberProject } from '@/session'
import { app } from './app'

const project = createRoute({
  getParentRoute: () => app,
  path: '/projects/$projectId',
  beforeLoad: ({ params }) => rememberProject(params.projectId),
})
const groups = createRoute({
  getParentRoute: () => project,
  path: '/groups',
  validateSearch: z.object({
    q: z.string().optional().catch(undefined),
    sort: z.enum(['name', 'rate', 'cost', 'created']).optional().catch(undefined),
    desc: z.boolean().optional().catch(undefined),
  }),
  component: lazyRouteComponent(() => import('@/pages/groups/GroupsPage'), 'GroupsPage'),
})
const welcome = z.object({ welcome: z.boolean().optional().catch(undefined) })
const newGroup = createRoute({
  getParentRoute: () => project,
  path: '/groups/new',
  validateSearch: welcome,
  component: lazyRouteComponent(() => import('@/pages/create/CreateGroupPage'), 'CreateGroupPage'),
})
const keys = createRoute({
  getParentRoute: () => project,
  path: '/keys',
  component: lazyRouteComponent(() => import('@/pages/settings/KeysPage'), 'KeysPage'),
})

const guarantee = createRoute({
  getParentRoute: () => project,
  path: '/guarantee',
  component: lazyRouteComponent(() => import('@/pages/guarantee/GuaranteePage'), 'GuaranteePage'),
})

const group = createRoute({
  getParentRoute: () => project,
  path: '/groups/$groupId',
  component: lazyRouteComponent(() => import('@/pages/group/GroupPage'), 'GroupPage'),
})
const overview = createRoute({
  getParentRoute: () => group,
  path: '/',
  component: lazyRouteComponent(() => import('@/pages/group/overview/OverviewTab'), 'OverviewTab'),
})
const metrics = createRoute({
  getParentRoute: () => group,
  path: '/metrics',
  validateSearch: z.object({ minutes: z.number().int().min(1).max(1440).optional().catch(undefined) }),
  component: lazyRouteComponent(() => import('@/pages/group/MetricsTab'), 'MetricsTab'),
})
const log = createRoute({
  getParentRoute: () => group,
  path: '/log',
  validateSearch: z.object({
    offset: z.number().int().min(0).optional().catch(undefined),
    at: z.iso.datetime().optional().catch(undefined),
    partition: z.number().int().min(0).max(255).optional().catch(undefined),
    view: z.enum(['text', 'json', 'hex']).optional().catch(undefined),
  }),
  component: lazyRouteComponent(() => import('@/pages/group/log/LogTab'), 'LogTab'),
})
const sla = createRoute({
  getParentRoute: () => group,
  path: '/sla',
  validateSearch: z.object({
    month: z
      .string()
      .regex(/^\d{4}-(0[1-9]|1[0-2])$/)
      .optional()
      .catch(undefined),
  }),
  component: lazyRouteComponent(() => import('@/pages/group/sla/SlaTab'), 'SlaTab'),
})
const connect = createRoute({
  getParentRoute: () => group,
  path: '/connect',
  validateSearch: welcome,
  component: lazyRouteComponent(() => import('@/pages/group/connect/ConnectTab'), 'ConnectTab'),
})
const partitions = createRoute({
  getParentRoute: () => group,
  path: '/partitions',
  component: lazyRouteComponent(() => import('@/pages/group/partitions/PartitionsTab'), 'PartitionsTab'),
})
const resize = createRoute({
  getParentRoute: () => group,
  path: '/resize',
  component: lazyRouteComponent(() => import('@/pages/group/resize/ResizePage'), 'ResizePage'),
})
const settings = createRoute({
  getParentRoute: () => group,
  path: '/settings',
  component: lazyRouteComponent(() => import('@/pages/group/settings/SettingsTab'), 'SettingsTab'),
})

/** Pages of one project. */
export const projectTree = project.addChildren([
  groups,
  newGroup,
  keys,
  guarantee,
  group.addChildren([overview, metrics, log, partitions, sla, connect, settings, resize]),
])
