import { createRoute, lazyRouteComponent, redirect } from '@tanstack/react-router'
import { z } from 'zod'
import { homeProject } from '@/session'
import { app } from './app'

const home = createRoute({
  getParentRoute: () => app,
  path: '/',
  beforeLoad: ({ context }) => {
    const project = homeProject(context.me.projects)
    if (project) throw redirect({ to: '/projects/$projectId/groups', params: { projectId: project.id } })
  },
  component: lazyRouteComponent(() => import('@/pages/NoProjectPage'), 'NoProjectPage'),
})

const usage = createRoute({
  getParentRoute: () => app,
  path: '/usage',
  component: lazyRouteComponent(() => import('@/pages/billing/UsagePage'), 'UsagePage'),
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
const serviceAccounts = createRoute({
  getParentRoute: () => app,
  path: '/service-accounts',
  component: lazyRouteComponent(() => import('@/pages/settings/ServiceAccountsPage'), 'ServiceAccountsPage'),
})
const webhooks = createRoute({
  getParentRoute: () => app,
  path: '/webhooks',
  component: lazyRouteComponent(() => import('@/pages/webhooks/WebhooksPage'), 'WebhooksPage'),
})
const webhook = createRoute({
  getParentRoute: () => app,
  path: '/webhooks/$webhookId',
  component: lazyRouteComponent(() => import('@/pages/webhooks/WebhookPage'), 'WebhookPage'),
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
const standing = createRoute({
  getParentRoute: () => app,
  path: '/organization',
  component: lazyRouteComponent(() => import('@/pages/organization/OrganizationPage'), 'OrganizationPage'),
})

/** Pages of the organization, and of the person's own account. */
export const organization = [
  home,
  usage,
  invoices,
  invoice,
  quotas,
  standing,
  members,
  audit,
  serviceAccounts,
  webhooks,
  webhook,
  account,
  verifyEmail,
] as const
