import type { QueryClient } from '@tanstack/react-query'
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
  type RouterHistory,
} from '@tanstack/react-router'
import { z } from 'zod'
import { meQuery, problemOf } from '@/api'
import { Shell } from '@/layout/Shell'
import { CrashPage, NotFoundPage } from '@/pages/Fallbacks'
import { homeProject, rememberProject } from '@/session'

interface Context {
  queries: QueryClient
}

const root = createRootRouteWithContext<Context>()({
  component: Outlet,
  errorComponent: CrashPage,
  notFoundComponent: NotFoundPage,
})

const login = createRoute({
  getParentRoute: () => root,
  path: '/login',
  validateSearch: z.object({
    next: z.string().optional().catch(undefined),
    expired: z.boolean().optional().catch(undefined),
  }),
  component: lazyRouteComponent(() => import('@/pages/auth/LoginPage'), 'LoginPage'),
})
const signup = createRoute({
  getParentRoute: () => root,
  path: '/signup',
  component: lazyRouteComponent(() => import('@/pages/auth/SignUpPage'), 'SignUpPage'),
})
const forgotPassword = createRoute({
  getParentRoute: () => root,
  path: '/forgot-password',
  component: lazyRouteComponent(() => import('@/pages/auth/ForgotPasswordPage'), 'ForgotPasswordPage'),
})
const resetPassword = createRoute({
  getParentRoute: () => root,
  path: '/reset-password',
  component: lazyRouteComponent(() => import('@/pages/auth/ResetPasswordPage'), 'ResetPasswordPage'),
})
const invitation = createRoute({
  getParentRoute: () => root,
  path: '/invitation',
  component: lazyRouteComponent(() => import('@/pages/auth/InvitationPage'), 'InvitationPage'),
})
const status = createRoute({
  getParentRoute: () => root,
  path: '/status',
  component: lazyRouteComponent(() => import('@/pages/status/StatusPage'), 'StatusPage'),
})

/** The routes below need a session. Without one the reader signs in and returns to the requested page. */
const app = createRoute({
  getParentRoute: () => root,
  id: 'app',
  beforeLoad: async ({ context, location }) => {
    try {
      return { me: await context.queries.ensureQueryData(meQuery) }
    } catch (error) {
      if (problemOf(error).status !== 401) throw error
      throw redirect({ to: '/login', search: location.href === '/' ? {} : { next: location.href } })
    }
  },
  component: Shell,
})

const home = createRoute({
  getParentRoute: () => app,
  path: '/',
  beforeLoad: ({ context }) => {
    const project = homeProject(context.me.projects)
    if (project) throw redirect({ to: '/projects/$projectId/groups', params: { projectId: project.id } })
  },
  component: lazyRouteComponent(() => import('@/pages/NoProjectPage'), 'NoProjectPage'),
})

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
  component: lazyRouteComponent(() => import('@/pages/group/SettingsTab'), 'SettingsTab'),
})

const invoices = createRoute({
  getParentRoute: () => app,
  path: '/invoices',
  component: lazyRouteComponent(() => import('@/pages/billing/InvoicesPage'), 'InvoicesPage'),
})
const invoice = createRoute({
  getParentRoute: () => app,
  path: '/invoices/$invoiceId',
  validateSearch: z.object({ paid: z.boolean().optional().catch(undefined) }),
  component: lazyRouteComponent(() => import('@/pages/billing/InvoicePage'), 'InvoicePage'),
})
const account = createRoute({
  getParentRoute: () => app,
  path: '/account',
  component: lazyRouteComponent(() => import('@/pages/account/AccountPage'), 'AccountPage'),
})
const verifyEmail = createRoute({
  getParentRoute: () => app,
  path: '/verify-email',
  component: lazyRouteComponent(() => import('@/pages/account/VerifyEmailPage'), 'VerifyEmailPage'),
})
const audit = createRoute({
  getParentRoute: () => app,
  path: '/audit',
  component: lazyRouteComponent(() => import('@/pages/audit/AuditPage'), 'AuditPage'),
})
const members = createRoute({
  getParentRoute: () => app,
  path: '/members',
  component: lazyRouteComponent(() => import('@/pages/members/MembersPage'), 'MembersPage'),
})
const quotas = createRoute({
  getParentRoute: () => app,
  path: '/quotas',
  component: lazyRouteComponent(() => import('@/pages/settings/QuotasPage'), 'QuotasPage'),
})

const tree = root.addChildren([
  login,
  signup,
  forgotPassword,
  resetPassword,
  invitation,
  status,
  app.addChildren([
    home,
    project.addChildren([
      groups,
      newGroup,
      keys,
      guarantee,
      group.addChildren([overview, metrics, partitions, sla, connect, settings, resize]),
    ]),
    invoices,
    invoice,
    quotas,
    members,
    audit,
    account,
    verifyEmail,
  ]),
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
