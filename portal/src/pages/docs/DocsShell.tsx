import { useQuery } from '@tanstack/react-query'
import { Link, Outlet } from '@tanstack/react-router'
import { meQuery } from '@/api'
import { RouteAnnouncer } from '@/layout/RouteAnnouncer'
import { buttonClass } from '@/ui/Button'
import { Logo } from '@/ui/Logo'
import { GUIDES } from './guides'

const LINK =
  'block rounded-lg px-2.5 py-1.5 text-sm text-ink-2 transition-colors hover:bg-hover hover:text-ink ' +
  'aria-[current=page]:bg-hover aria-[current=page]:font-medium aria-[current=page]:text-ink'

/** The frame of the documentation, for strangers, too. */
export function DocsShell() {
  const me = useQuery({ ...meQuery, retry: false })
  return (
    <div className="min-h-dvh">
      <header className="sticky top-0 z-20 border-b border-line bg-paper">
        <div className="mx-auto flex max-w-7xl items-center justify-between gap-4 px-4 py-3 sm:px-8">
          <Link to="/docs" aria-label="Documentation" className="rounded">
            <Logo />
          </Link>
          <div className="flex items-center gap-3">
            <Link to="/status" className="rounded text-sm text-ink-2 hover:text-ink">
              Status
            </Link>
            <Link to={me.data ? '/' : '/login'} className={buttonClass('secondary', 'small')}>
              {me.data ? 'Your groups' : 'Log in'}
            </Link>
          </div>
        </div>
      </header>
      <div className="mx-auto grid max-w-7xl gap-x-10 px-4 sm:px-8 lg:grid-cols-[13rem_minmax(0,1fr)]">
        <nav
          aria-label="Documentation"
          className="-mx-2.5 overflow-x-auto pt-6 lg:sticky lg:top-16 lg:max-h-[calc(100dvh-4rem)] lg:overflow-y-auto"
        >
          <ul className="flex gap-1 whitespace-nowrap lg:flex-col lg:whitespace-normal">
            <li>
              <Link to="/docs" activeOptions={{ exact: true }} className={LINK}>
                Get started
              </Link>
            </li>
            {GUIDES.map(({ slug, title }) => (
              <li key={slug}>
                <Link to="/docs/$guide" params={{ guide: slug }} className={LINK}>
                  {title}
                </Link>
              </li>
            ))}
            <li>
              <Link to="/docs/api" className={LINK}>
                API reference
              </Link>
            </li>
          </ul>
        </nav>
        <main id="content" tabIndex={-1} className="min-w-0 pt-8 pb-20 outline-none">
          <Outlet />
        </main>
      </div>
      <RouteAnnouncer />
    </div>
  )
}
