import { createRoute, lazyRouteComponent, redirect } from '@tanstack/react-router'
import { z } from 'zod'
import { resumeOperator } from '@/pages/operator/session'
import { root } from './root'

const login = createRoute({
  getParentRoute: () => root,
  path: '/operator/login',
  component: lazyRouteComponent(() => import('@/pages/operator/OperatorLoginPage'), 'OperatorLoginPage'),
})
/** Routes with this parent need an operator's token, which has nothing to do with sessions of customers. */
const console = createRoute({
  getParentRoute: () => root,
  path: '/operator',
  beforeLoad: () => {
    if (!resumeOperator()) throw redirect({ to: '/operator/login' })
  },
  component: lazyRouteComponent(() => import('@/pages/operator/OperatorShell'), 'OperatorShell'),
})
const fleet = createRoute({
  getParentRoute: () => console,
  path: '/',
  component: lazyRouteComponent(() => import('@/pages/operator/fleet/FleetPage'), 'FleetPage'),
})
const sharing = createRoute({
  getParentRoute: () => console,
  path: '/sharing',
  component: lazyRouteComponent(() => import('@/pages/operator/sharing/SharingPage'), 'SharingPage'),
})
const moves = createRoute({
  getParentRoute: () => console,
  path: '/moves',
  component: lazyRouteComponent(() => import('@/pages/operator/moves/MovesPage'), 'MovesPage'),
})
const organizations = createRoute({
  getParentRoute: () => console,
  path: '/organizations',
  validateSearch: z.object({ q: z.string().optional().catch(undefined) }),
  component: lazyRouteComponent(() => import('@/pages/operator/organizations/TenantsPage'), 'TenantsPage'),
})
const organization = createRoute({
  getParentRoute: () => console,
  path: '/organizations/$organizationId',
  component: lazyRouteComponent(() => import('@/pages/operator/organizations/TenantPage'), 'TenantPage'),
})
const hosted = createRoute({
  getParentRoute: () => console,
  path: '/servers/$serverId',
  component: lazyRouteComponent(() => import('@/pages/operator/fleet/HostedPage'), 'HostedPage'),
})
const admissions = createRoute({
  getParentRoute: () => console,
  path: '/admissions',
  validateSearch: z.object({
    only: z.enum(['refused']).optional().catch(undefined),
    hours: z
      .union([z.literal(24), z.literal(168), z.literal(720)])
      .optional()
      .catch(undefined),
  }),
  component: lazyRouteComponent(() => import('@/pages/operator/admissions/AdmissionsPage'), 'AdmissionsPage'),
})
const money = createRoute({
  getParentRoute: () => console,
  path: '/money',
  component: lazyRouteComponent(() => import('@/pages/operator/money/MoneyPage'), 'MoneyPage'),
})
const incidents = createRoute({
  getParentRoute: () => console,
  path: '/incidents',
  component: lazyRouteComponent(() => import('@/pages/operator/incidents/IncidentsPage'), 'IncidentsPage'),
})
const audit = createRoute({
  getParentRoute: () => console,
  path: '/audit',
  component: lazyRouteComponent(() => import('@/pages/operator/OperatorAuditPage'), 'OperatorAuditPage'),
})

/** The console of those who run the fleet. */
export const operatorTree = [
  login,
  console.addChildren([
    fleet,
    hosted,
    sharing,
    moves,
    organizations,
    organization,
    admissions,
    money,
    incidents,
    audit,
  ]),
] as const
