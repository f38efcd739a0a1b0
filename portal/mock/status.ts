import type { ServiceStatus, StatusComponent, StatusDay, StatusIncident } from '@/api'
import { uuid } from './records'

const DAY_MS = 86_400_000
const DAYS = 90
/** The session storage's key for a story other than `calm`. */
export const STORY_KEY = 'quorate.mock.status'
export type Story = 'calm' | 'outage' | 'unknown' | 'empty' | 'away'

type State = StatusComponent['state']
type Name = StatusComponent['component']
const NAMES: Name[] = ['api', 'admission', 'data_plane', 'usage']
const NOW: Record<Exclude<Story, 'empty' | 'away'>, Record<Name, [State, string]>> = {
  calm: {
    api: ['operational', 'Requests are answered.'],
    admission: ['operational', 'Groups can be created and resized.'],
    data_plane: ['operational', 'All groups accept appends.'],
    usage: ['operational', 'Usage and charts are up to date.'],
  },
  outage: {
    api: ['operational', 'Requests are answered.'],
    admission: ['outage', 'Groups cannot be created or resized. Existing groups go on.'],
    data_plane: ['degraded', '98.4 % of the groups accept appends.'],
    usage: ['degraded', 'Usage and charts are 4 min behind. No usage is lost.'],
  },
  unknown: {
    api: ['operational', 'Requests are answered.'],
    admission: ['unknown', 'It was not measured in the last minutes.'],
    data_plane: ['unknown', 'It was not measured in the last minutes.'],
    usage: ['unknown', 'It was not measured in the last minutes.'],
  },
}

export function statusOf(story: Story, nowMs: number): ServiceStatus {
  const at = new Date(nowMs).toISOString()
  if (story === 'empty' || story === 'away')
    return { at, state: story === 'empty' ? 'unknown' : 'outage', regions: [], incidents: [] }
  const regions = ['eu-north', 'us-east'].map((region, place) => {
    // The story is the first region's. The other one is calm, unless nobody measures.
    const now = NOW[place === 0 || story === 'unknown' ? story : 'calm']
    const components = NAMES.map((component, number) =>
      componentOf(component, now[component], place * 4 + number, nowMs),
    )
    return { region, state: worst(components), components }
  })
  return { at, state: worst(regions), regions, incidents: incidentsOf(story, nowMs) }
}

const SEVERITY: State[] = ['operational', 'unknown', 'degraded', 'outage']
function worst(parts: { state: State }[]): State {
  return parts
    .map(({ state }) => state)
    .reduce((left, right) => (SEVERITY.indexOf(left) < SEVERITY.indexOf(right) ? right : left))
}

function componentOf(component: Name, [state, detail]: [State, string], seed: number, nowMs: number): StatusComponent {
  const days = Array.from({ length: DAYS }, (_, index) => dayOf(nowMs - (DAYS - 1 - index) * DAY_MS, index, seed))
  const measured = days.flatMap(({ good }) => (good === null ? [] : [good]))
  const mean = measured.reduce((sum, good) => sum + good, 0) / measured.length
  return { component, state, detail, good_24h: days.at(-1)?.good ?? null, good_90d: mean, days }
}

/** Most days are good. The first ones were before the service began. */
function dayOf(ms: number, index: number, seed: number): StatusDay {
  const day = new Date(ms).toISOString().slice(0, 10)
  if (index < 12 || (index + seed * 7) % 61 === 40) return { day, state: 'unknown', good: null }
  const place = (index * 7 + seed * 31) % 83
  if (place === 3) return { day, state: 'outage', good: 0.962_5 }
  if (place === 17 || place === 40) return { day, state: 'degraded', good: 0.997_2 }
  return { day, state: 'operational', good: place % 5 === 0 ? 0.999_3 : 1 }
}

function incidentsOf(story: Story, nowMs: number): StatusIncident[] {
  const open: StatusIncident[] =
    story === 'outage'
      ? [
          incident(90, 'Groups cannot be created in eu-north', 'outage', nowMs - 26 * 60_000, [
            ['investigating', 'Creating and resizing groups fails. Groups that run are not affected.', 0],
            ['identified', 'A disk of the coordinator is full.\nWe move its log to another one.', 14],
          ]),
        ]
      : []
  return [
    ...open,
    incident(80, 'Usage was shown late', 'degraded', nowMs - 9 * DAY_MS, [
      ['investigating', 'Charts and usage are some minutes behind. Nothing is lost.', 0],
      ['monitoring', 'The worker runs again, and catches up.', 21],
      ['resolved', 'All usage is stored. Bills are not affected.', 34],
    ]),
    incident(70, 'Slow appends of some persistent groups', 'degraded', nowMs - 47 * DAY_MS, [
      ['identified', 'A server’s disk is slow. Its replicas move to others.', 0],
      ['resolved', 'Every group is on healthy disks. SLA credits come by themselves.', 55],
    ]),
  ]
}

function incident(
  n: number,
  title: string,
  impact: StatusIncident['impact'],
  openedMs: number,
  told: [StatusIncident['phase'], string, number][],
): StatusIncident {
  const updates = told
    .map(([phase, message, minutes], index) => ({
      id: uuid(n + index + 1),
      at: new Date(openedMs + minutes * 60_000).toISOString(),
      phase,
      impact,
      message,
    }))
    .toReversed()
  const [latest] = updates
  const phase = latest?.phase ?? 'investigating'
  return {
    id: uuid(n),
    title,
    regions: ['eu-north'],
    components: impact === 'outage' ? ['admission'] : n === 80 ? ['usage'] : ['data_plane'],
    impact,
    phase,
    opened_at: new Date(openedMs).toISOString(),
    resolved_at: phase === 'resolved' ? (latest?.at ?? null) : null,
    updates,
  }
}
