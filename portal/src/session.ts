import { useQueryClient, useSuspenseQuery, type QueryClient } from '@tanstack/react-query'
import { useNavigate, type AnyRouter } from '@tanstack/react-router'
import { api, meQuery, setCsrfToken, setSignedOutHandler, type Me, type Project } from '@/api'

/** As `docs/internals/api.md` lists them. */
export type Permission = 'append' | 'read' | 'manage' | 'billing' | 'view' | 'team' | 'administer' | 'own'

const LAST_PROJECT = 'quorate.project'

/** The signed-in user. Only for pages below the signed-in route, which has loaded it. */
export function useMe(): Me {
  return useSuspenseQuery(meQuery).data
}

/** Whether the user's role has the permission: pages offer nothing that would be refused. */
export function useMay(permission: Permission): boolean {
  return useMe().permissions.includes(permission)
}

/** The project to open if the address names none: the last used one, else the first. */
export function homeProject(projects: Project[]): Project | undefined {
  const last = localStorage.getItem(LAST_PROJECT)
  return projects.find((project) => project.id === last) ?? projects[0]
}

export function rememberProject(id: string): void {
  localStorage.setItem(LAST_PROJECT, id)
}

/** Goes on in another organization: nothing of the former one stays in the page. */
export function useSwitchOrganization(): (organizationId: string) => Promise<void> {
  const queries = useQueryClient()
  const navigate = useNavigate()
  return async (organizationId) => {
    await api.switchOrganization(organizationId)
    queries.clear()
    await navigate({ to: '/' })
  }
}

/** Logs out. The account's loaded data is dropped even when the service does not answer. */
export function useSignOut(): () => Promise<void> {
  const queries = useQueryClient()
  const navigate = useNavigate()
  return async () => {
    await api.logOut().catch(() => setCsrfToken(null))
    queries.clear()
    await navigate({ to: '/login' })
  }
}

/** After the service has ended the session, the reader logs in again and returns to the same page. */
export function leaveWhenSessionEnds(router: AnyRouter, queries: QueryClient): void {
  setSignedOutHandler(() => {
    const { pathname, href } = router.state.location
    if (pathname === '/login') return
    setCsrfToken(null)
    queries.clear()
    void router.navigate({ to: '/login', search: { next: href, expired: true } })
  })
}
