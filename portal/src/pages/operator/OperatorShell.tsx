import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, Outlet, useNavigate } from '@tanstack/react-router'
import { keys, operatorQuery, problemOf } from '@/api'
import { RouteAnnouncer } from '@/layout/RouteAnnouncer'
import { Button } from '@/ui/Button'
import { Logo } from '@/ui/Logo'
import { LoadFailed, Notice } from '@/ui/Notice'
import { Ago } from '@/ui/Time'
import { endOperator } from './session'

const LINK =
  'rounded-lg px-2.5 py-1.5 text-sm text-ink-2 transition-colors hover:bg-hover hover:text-ink ' +
  'aria-[current=page]:bg-hover aria-[current=page]:font-medium aria-[current=page]:text-ink'

/** The frame of the operators' console: wide, for tables of servers. */
export function OperatorShell() {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const me = useQuery(operatorQuery)
  const leave = async () => {
    endOperator()
    queries.removeQueries({ queryKey: keys.operator })
    await navigate({ to: '/operator/login' })
  }
  const isOver = me.error !== null && problemOf(me.error).status === 401
  return (
    <div className="min-h-dvh">
      <header className="border-b border-line">
        <div className="mx-auto flex max-w-7xl flex-wrap items-center gap-x-6 gap-y-2 px-4 py-3 sm:px-8">
          <Link to="/operator" aria-label="Fleet" className="rounded">
            <Logo />
          </Link>
          <nav aria-label="Console" className="flex flex-wrap gap-1">
            <Link to="/operator" activeOptions={{ exact: true }} className={LINK}>
              Fleet
            </Link>
            <Link to="/operator/sharing" className={LINK}>
              Sharing
            </Link>
            <Link to="/operator/moves" className={LINK}>
              Moves
            </Link>
            <Link to="/operator/organizations" className={LINK}>
              Organizations
            </Link>
            <Link to="/operator/admissions" className={LINK}>
              Admissions
            </Link>
            <Link to="/operator/money" className={LINK}>
              Money
            </Link>
            <Link to="/operator/incidents" className={LINK}>
              Incidents
            </Link>
            <Link to="/operator/audit" className={LINK}>
              Audit log
            </Link>
          </nav>
          <div className="ml-auto flex items-center gap-3 text-[13px] text-ink-2">
            {me.data && (
              <span>
                {me.data.name}
                {me.data.expires_at && (
                  <>
                    , ends <Ago at={me.data.expires_at} />
                  </>
                )}
              </span>
            )}
            <Button variant="secondary" size="small" onClick={() => void leave()}>
              Leave
            </Button>
          </div>
        </div>
      </header>
      <main id="content" tabIndex={-1} className="mx-auto w-full max-w-7xl px-4 pt-8 pb-16 outline-none sm:px-8">
        {isOver ? (
          <Notice
            tone="warn"
            title="Your session is over"
            action={<Button onClick={() => void leave()}>Log in again</Button>}
          >
            Make another token and come back: nothing was changed.
          </Notice>
        ) : me.error && !me.data ? (
          <LoadFailed what="the console" error={me.error} retry={() => void me.refetch()} />
        ) : (
          <Outlet />
        )}
      </main>
      <RouteAnnouncer />
    </div>
  )
}
