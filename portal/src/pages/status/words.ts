import type { ServiceStatus, StatusComponent, StatusDay, StatusIncident } from '@/api'
import { percent } from '@/format/quantity'

export type State = StatusComponent['state']
export type Tone = 'good' | 'warn' | 'danger' | 'plain'

export const STATE_NAMES: Record<State, string> = {
  operational: 'Operational',
  degraded: 'Degraded',
  outage: 'Outage',
  unknown: 'Unknown',
}
export const STATE_TONES: Record<State, Tone> = {
  operational: 'good',
  degraded: 'warn',
  outage: 'danger',
  unknown: 'plain',
}

export const COMPONENTS: Record<StatusComponent['component'], { name: string; what: string }> = {
  data_plane: { name: 'Appends and reads', what: 'The groups’ servers. Measured in each minute of each group.' },
  api: { name: 'API and portal', what: 'Accounts, handles, reports and this page.' },
  admission: { name: 'Creating and resizing', what: 'Admission and placement of groups.' },
  usage: { name: 'Usage and billing', what: 'Usage, charts and what invoices are made of.' },
}
/** The order of the page: what customers notice first comes first. */
export const ORDER: StatusComponent['component'][] = ['data_plane', 'api', 'admission', 'usage']

export const PHASES: Record<StatusIncident['phase'], string> = {
  investigating: 'Investigating',
  identified: 'Cause identified',
  monitoring: 'Mended, and watched',
  resolved: 'Resolved',
}

export function openIncidents(status: ServiceStatus): StatusIncident[] {
  return status.incidents.filter((each) => each.resolved_at === null)
}

/** The sentence at the top: measurements and open incidents, the worse of both. */
export function headline(status: ServiceStatus): { state: State; title: string } {
  const told = openIncidents(status).map((each) => each.impact)
  if (status.state === 'outage' || told.includes('outage'))
    return { state: 'outage', title: 'Part of the service is down' }
  if (status.state === 'degraded' || told.includes('degraded'))
    return { state: 'degraded', title: 'Part of the service is impaired' }
  if (status.regions.length === 0) return { state: 'unknown', title: 'Nothing has been measured yet' }
  if (status.state === 'unknown') return { state: 'unknown', title: 'Not everything can be measured now' }
  return { state: 'operational', title: 'Everything works' }
}

const DAY = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeZone: 'UTC' })

/** A day for people: "Nov 25, 2026: degraded, 99.2 % of its minutes were good". */
export function dayText({ day, state, good }: StatusDay): string {
  const date = DAY.format(new Date(`${day}T00:00:00Z`))
  if (good === null) return `${date}: not measured`
  const share = `${percent(good, 2)} of minutes good`
  return state === 'unknown' ? `${date}: hardly measured, ${share}` : `${date}: ${state}, ${share}`
}

/** The place of the day under the pointer. `across`: from 0 at the left to 1 at the right. */
export function dayAt(across: number, days: number): number {
  return Math.min(days - 1, Math.max(0, Math.floor(across * days)))
}
