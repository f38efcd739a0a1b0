import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { z } from 'zod'
import { root } from './root'

const login = createRoute({
  getParentRoute: () => root,
  path: '/login',
  validateSearch: z.object({
    next: z.string().optional().catch(undefined),
    expired: z.boolean().optional().catch(undefined),
  }),
  component: lazyRouteComponent(() => import('@/pages/auth/LoginPage'), 'LoginPage'),
})
const loginReturn = createRoute({
  getParentRoute: () => root,
  path: '/login/return',
  // As the provider sends them. Codes may look like numbers, which the router would read as such.
  validateSearch: z.object({
    code: z.coerce.string().optional().catch(undefined),
    state: z.coerce.string().optional().catch(undefined),
    error: z.string().optional().catch(undefined),
  }),
  component: lazyRouteComponent(() => import('@/pages/auth/provider/ReturnPage'), 'ReturnPage'),
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
const view = createRoute({
  getParentRoute: () => root,
  path: '/view',
  component: lazyRouteComponent(() => import('@/pages/view/ViewPage'), 'ViewPage'),
})
const status = createRoute({
  getParentRoute: () => root,
  path: '/status',
  component: lazyRouteComponent(() => import('@/pages/status/StatusPage'), 'StatusPage'),
})

/** Pages for those who are not logged in, too. */
export const strangers = [login, loginReturn, signup, forgotPassword, resetPassword, invitation, view, status] as const
