import { Link, useParams } from '@tanstack/react-router'
import {
  Activity,
  BookOpen,
  Bot,
  Building2,
  ChartColumn,
  FileText,
  Gauge,
  KeyRound,
  Layers,
  Scale,
  ScrollText,
  Search,
  Users,
  Webhook,
} from 'lucide-react'
import type { ReactNode } from 'react'
import { homeProject, useMay, useMe } from '@/session'
import { Logo } from '@/ui/Logo'
import { AccountMenu } from './AccountMenu'
import { openPalette } from './palette'
import { ProjectSwitcher } from './ProjectSwitcher'

const LINK =
  'flex h-9 items-center gap-2.5 rounded-lg px-2.5 text-sm text-ink-2 transition-colors hover:bg-hover hover:text-ink ' +
  'aria-[current=page]:bg-hover aria-[current=page]:font-medium aria-[current=page]:text-ink'
const ICON = 'size-4 text-ink-3'

export function Sidebar() {
  const me = useMe()
  const [maySeeTeam, maySeeBilling, mayAdminister] = [useMay('team'), useMay('billing'), useMay('administer')]
  const { projectId } = useParams({ strict: false })
  const project = me.projects.find((each) => each.id === projectId) ?? homeProject(me.projects)
  return (
    <div className="flex h-full flex-col px-3 py-4">
      <Link to="/" aria-label="Quorate, home" className="mb-5 ml-2.5 self-start rounded">
        <Logo />
      </Link>
      {project && <ProjectSwitcher project={project} />}
      <GoTo />
      <nav aria-label="Main" className="mt-4 flex flex-1 flex-col gap-6 overflow-y-auto">
        {project && (
          <Group>
            <Link
              to="/projects/$projectId/groups"
              params={{ projectId: project.id }}
              className={LINK}
              activeOptions={{ exact: false }}
            >
              <Layers aria-hidden className={ICON} />
              Groups
            </Link>
            <Link to="/projects/$projectId/guarantee" params={{ projectId: project.id }} className={LINK}>
              <Scale aria-hidden className={ICON} />
              Guarantee
            </Link>
            {maySeeTeam && (
              <Link to="/projects/$projectId/keys" params={{ projectId: project.id }} className={LINK}>
                <KeyRound aria-hidden className={ICON} />
                API keys
              </Link>
            )}
          </Group>
        )}
        <Group heading="Organization">
          {maySeeTeam && (
            <Link to="/members" className={LINK}>
              <Users aria-hidden className={ICON} />
              Members
            </Link>
          )}
          {maySeeBilling && (
            <Link to="/usage" className={LINK}>
              <ChartColumn aria-hidden className={ICON} />
              Usage and cost
            </Link>
          )}
          {maySeeBilling && (
            <Link to="/invoices" className={LINK}>
              <FileText aria-hidden className={ICON} />
              Invoices
            </Link>
          )}
          {mayAdminister && (
            <Link to="/service-accounts" className={LINK}>
              <Bot aria-hidden className={ICON} />
              Service accounts
            </Link>
          )}
          {mayAdminister && (
            <Link to="/webhooks" className={LINK}>
              <Webhook aria-hidden className={ICON} />
              Webhooks
            </Link>
          )}
          {mayAdminister && (
            <Link to="/audit" className={LINK}>
              <ScrollText aria-hidden className={ICON} />
              Audit log
            </Link>
          )}
          <Link to="/quotas" className={LINK}>
            <Gauge aria-hidden className={ICON} />
            Quotas
          </Link>
          <Link to="/organization" className={LINK}>
            <Building2 aria-hidden className={ICON} />
            Organization
          </Link>
        </Group>
      </nav>
      <Link to="/docs" className={LINK}>
        <BookOpen aria-hidden className={ICON} />
        Documentation
      </Link>
      <Link to="/status" className={LINK}>
        <Activity aria-hidden className={ICON} />
        Service status
      </Link>
      <AccountMenu />
    </div>
  )
}

function Group({ heading, children }: { heading?: string; children: ReactNode }) {
  return (
    <div className="flex flex-col gap-0.5">
      {heading && <p className="mb-1 px-2.5 text-xs text-ink-3">{heading}</p>}
      {children}
    </div>
  )
}

/** Opens the palette, and tells its keys. */
function GoTo() {
  return (
    <button
      type="button"
      onClick={openPalette}
      className="mt-3 flex h-9 items-center gap-2.5 rounded-lg border border-line px-2.5 text-sm text-ink-3 transition-colors hover:border-line-strong hover:text-ink"
    >
      <Search aria-hidden className="size-4" />
      <span className="flex-1 text-left">Go to…</span>
      <kbd className="font-sans text-xs text-ink-3">{isMac ? '⌘K' : 'Ctrl K'}</kbd>
    </button>
  )
}

const isMac = navigator.userAgent.includes('Mac')
