import { createRoute, redirect } from '@tanstack/react-router'
import { meQuery, problemOf } from '@/api'
import { Shell } from '@/layout/Shell'
import { root } from './root'

/** Routes with this parent need a session. Without one the reader signs in and returns to the requested page. */
export const app = createRoute({
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
