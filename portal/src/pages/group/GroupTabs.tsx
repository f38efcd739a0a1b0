import { Link } from '@tanstack/react-router'
import { useMay } from '@/session'

const LOG = '/projects/$projectId/groups/$groupId/log'
const CONNECT = '/projects/$projectId/groups/$groupId/connect'
const TABS = [
  { to: '/projects/$projectId/groups/$groupId', label: 'Overview', exact: true },
  { to: '/projects/$projectId/groups/$groupId/metrics', label: 'Metrics', exact: false },
  { to: LOG, label: 'Log', exact: false },
  { to: '/projects/$projectId/groups/$groupId/partitions', label: 'Partitions', exact: false },
  { to: '/projects/$projectId/groups/$groupId/sla', label: 'SLA', exact: false },
  { to: CONNECT, label: 'Connect', exact: false },
  { to: '/projects/$projectId/groups/$groupId/settings', label: 'Settings', exact: false },
] as const

/** Links that look like tabs: each has an address of its own, so they are navigation. */
export function GroupTabs(params: { projectId: string; groupId: string }) {
  const mayConnect = useMay('append')
  const mayRead = useMay('read')
  const shown = TABS.filter(({ to }) => (mayConnect || to !== CONNECT) && (mayRead || to !== LOG))
  return (
    <nav aria-label="Group" className="-mx-4 mt-6 mb-7 overflow-x-auto border-b border-line px-4 sm:mx-0 sm:px-0">
      <ul className="flex gap-6">
        {shown.map(({ to, label, exact }) => (
          <li key={to}>
            <Link
              to={to}
              params={params}
              activeOptions={{ exact, includeSearch: false }}
              className="-mb-px block border-b-2 border-transparent py-2.5 text-sm whitespace-nowrap text-ink-2 transition-colors hover:text-ink aria-[current=page]:border-accent aria-[current=page]:font-medium aria-[current=page]:text-ink"
            >
              {label}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  )
}
