import type { Group, Project } from '@/api'
import type { Permission } from '@/session'

/** A place to go to. `words` are found, too, and not shown. */
export interface Command {
  label: string
  path: string
  note?: string
  words?: string
}
export interface Section {
  value: string
  items: Command[]
}

interface Known {
  projects: Project[]
  groups: Group[]
  projectId: string | undefined
  may: (permission: Permission) => boolean
}

const GROUP_TABS: [string, string, Permission][] = [
  ['/log', 'log', 'read'],
  ['/metrics', 'metrics', 'view'],
  ['/sla', 'SLA', 'view'],
]

/** Everything that the person may open, by section. */
export function commandsOf({ projects, groups, projectId, may }: Known): Section[] {
  const inProject = projectId === undefined ? [] : ofProject(`/projects/${projectId}`, may)
  const ofGroups = groups.flatMap((group) => {
    const base = `/projects/${group.project_id}/groups/${group.id}`
    const tabs = GROUP_TABS.filter(([, , permission]) => may(permission)).map(([path, tab]) => ({
      label: `${group.name}: ${tab}`,
      path: base + path,
      words: group.id,
    }))
    return [{ label: group.name, path: base, note: 'Group', words: group.id }, ...tabs]
  })
  const others = projects
    .filter(({ id }) => id !== projectId)
    .map(({ id, name }) => ({ label: name, path: `/projects/${id}/groups`, note: 'Project' }))
  const sections = [
    { value: 'Pages', items: [...inProject, ...ofOrganization(may)] },
    { value: 'Groups', items: ofGroups },
    { value: 'Projects', items: others },
  ]
  return sections.filter(({ items }) => items.length > 0)
}

function ofProject(base: string, may: Known['may']): Command[] {
  return [
    { label: 'Groups', path: `${base}/groups`, words: 'logs list' },
    ...(may('manage') ? [{ label: 'New group', path: `${base}/groups/new`, words: 'create log price quote' }] : []),
    { label: 'Guarantee', path: `${base}/guarantee`, words: 'share tokens' },
    ...(may('team') ? [{ label: 'API keys', path: `${base}/keys`, words: 'secret token scopes' }] : []),
  ]
}

function ofOrganization(may: Known['may']): Command[] {
  const pages: [Permission | null, Command][] = [
    ['team', { label: 'Members', path: '/members', words: 'invite people roles' }],
    ['billing', { label: 'Usage and cost', path: '/usage', words: 'spend budget cap commitment month' }],
    ['billing', { label: 'Invoices', path: '/invoices', words: 'bills pay credit' }],
    ['administer', { label: 'Service accounts', path: '/service-accounts', words: 'keys terraform automation ci' }],
    ['administer', { label: 'Webhooks', path: '/webhooks', words: 'events' }],
    ['administer', { label: 'Audit log', path: '/audit', words: 'history changes who' }],
    [null, { label: 'Quotas', path: '/quotas', words: 'limits' }],
    [null, { label: 'Organization', path: '/organization', words: 'close export delete' }],
    [null, { label: 'Your account', path: '/account', words: 'password passkey session authenticator' }],
    [null, { label: 'Documentation', path: '/docs', words: 'help guide sdk python javascript curl' }],
    [null, { label: 'API reference', path: '/docs/api', words: 'openapi rest endpoints' }],
    [null, { label: 'Service status', path: '/status', words: 'incidents outage' }],
  ]
  return pages.filter(([permission]) => permission === null || may(permission)).map(([, command]) => command)
}
