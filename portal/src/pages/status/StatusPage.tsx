import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { CircleAlert, CircleCheck, CircleHelp, Rss, TriangleAlert } from 'lucide-react'
import { problemOf, statusQuery, type ServiceStatus } from '@/api'
import { RouteAnnouncer } from '@/layout/RouteAnnouncer'
import { Logo } from '@/ui/Logo'
import { LoadFailed, Notice } from '@/ui/Notice'
import { EmptyState, Loading, Skeleton } from '@/ui/Surface'
import { Minute } from '@/ui/Time'
import { usePageTitle } from '@/ui/title'
import { OpenIncidents, PastIncidents } from './Incidents'
import { Region } from './Region'
import { headline, openIncidents, type State } from './words'

/** The state of the service, for everybody: it needs no session. */
export function StatusPage() {
  usePageTitle('Service status')
  const status = useQuery(statusQuery)
  return (
    <div className="mx-auto flex min-h-dvh w-full max-w-3xl flex-col px-4 sm:px-8">
      <header className="flex h-16 items-center justify-between">
        <Link to="/" aria-label="Quorate, home" className="rounded">
          <Logo />
        </Link>
        <a
          href="/v1/status/feed"
          className="inline-flex h-9 items-center gap-2 rounded-lg px-2.5 text-[13px] text-ink-2 hover:bg-hover hover:text-ink"
        >
          <Rss aria-hidden className="size-4 text-ink-3" />
          Feed
        </a>
      </header>
      <main className="flex-1 space-y-8 pt-4 pb-16">
        {status.isPending && <Waiting />}
        {status.error && !status.data && (
          <>
            <h1 className="sr-only">Service status</h1>
            <LoadFailed what="the status" error={status.error} retry={() => void status.refetch()} />
          </>
        )}
        {status.data && (
          <>
            {status.error && (
              <Notice tone="warn" title="The status could not be read anew">
                {problemOf(status.error).detail} Below is what was read last.
              </Notice>
            )}
            <Whole status={status.data} />
          </>
        )}
      </main>
      <footer className="border-t border-line py-6 text-[13px] leading-relaxed text-ink-3">
        <p>
          States and days are measured; people tell of incidents. Days are in UTC. Unknown means that nothing was
          measured: neither good nor bad. Each group’s own minutes are in its SLA report.
        </p>
      </footer>
      <RouteAnnouncer />
    </div>
  )
}

const ICONS = {
  operational: CircleCheck,
  degraded: TriangleAlert,
  outage: CircleAlert,
  unknown: CircleHelp,
}
const COLOURS: Record<State, string> = {
  operational: 'bg-accent-soft text-accent-text',
  degraded: 'bg-warn-soft text-warn-text',
  outage: 'bg-danger-soft text-danger-text',
  unknown: 'bg-sunken text-ink-2',
}

function Whole({ status }: { status: ServiceStatus }) {
  const { state, title } = headline(status)
  const open = openIncidents(status)
  const Icon = ICONS[state]
  // Without its database the service knows nothing of incidents either.
  const nothingRead = status.regions.length === 0 && status.state === 'outage'
  return (
    <>
      <div className={`flex items-start gap-4 rounded-2xl px-5 py-6 sm:px-6 ${COLOURS[state]}`}>
        <Icon aria-hidden className="mt-1 size-6 shrink-0" />
        <div>
          <h1 className="text-[22px] leading-tight font-semibold">{title}</h1>
          <p className="mt-1 text-[13px] text-ink-2">
            As of <Minute at={status.at} />
          </p>
        </div>
      </div>
      <OpenIncidents incidents={open} />
      {status.regions.length === 0 && <NoRegions nothingRead={nothingRead} />}
      {status.regions.map((region) => (
        <Region key={region.region} {...region} />
      ))}
      {!nothingRead && <PastIncidents incidents={status.incidents.filter((each) => each.resolved_at !== null)} />}
    </>
  )
}

function NoRegions({ nothingRead }: { nothingRead: boolean }) {
  if (nothingRead)
    return (
      <EmptyState title="Measurements cannot be read now">
        The API is there and its database is not. Groups go on meanwhile: appends and reads need neither.
      </EmptyState>
    )
  return (
    <EmptyState title="No region has been measured yet">
      A region appears here a minute after its first server has joined.
    </EmptyState>
  )
}

function Waiting() {
  return (
    <Loading label="Loading the status">
      <Skeleton className="h-24 rounded-2xl" />
      <Skeleton className="mt-8 h-96 rounded-2xl" />
    </Loading>
  )
}
