import { describe, expect, it } from 'vitest'
import type { ServiceStatus, StatusIncident } from '@/api'
import { dayAt, dayText, headline } from './words'

const incident = (impact: 'degraded' | 'outage', resolved: boolean): StatusIncident => ({
  id: impact,
  title: 'An incident',
  regions: ['local'],
  components: ['api'],
  impact,
  phase: resolved ? 'resolved' : 'investigating',
  opened_at: '2026-11-25T10:00:00Z',
  resolved_at: resolved ? '2026-11-25T11:00:00Z' : null,
  updates: [],
})
const status = (state: ServiceStatus['state'], incidents: StatusIncident[] = [], regions = 1): ServiceStatus => ({
  at: '2026-11-25T12:00:00Z',
  state,
  regions: Array.from({ length: regions }, () => ({ region: 'local', state, components: [] })),
  incidents,
})

describe('the headline', () => {
  it.each([
    ['operational', [], 'operational'],
    ['operational', [incident('outage', true)], 'operational'],
    ['operational', [incident('degraded', false)], 'degraded'],
    ['operational', [incident('outage', false)], 'outage'],
    ['degraded', [incident('outage', false)], 'outage'],
    ['outage', [incident('degraded', false)], 'outage'],
    ['unknown', [], 'unknown'],
    ['unknown', [incident('degraded', false)], 'degraded'],
  ] as const)('of %s and its incidents is the worse of both', (state, incidents, expected) => {
    expect(headline(status(state, [...incidents])).state).toBe(expected)
  })
  it('never says that something works which nobody measured', () => {
    expect(headline(status('unknown', [], 0))).toEqual({ state: 'unknown', title: 'Nothing has been measured yet' })
  })
})

describe('a day', () => {
  it('is told with its share, which is never rounded up', () => {
    expect(dayText({ day: '2026-11-25', state: 'degraded', good: 0.999_96 })).toBe(
      'Nov 25, 2026: degraded, 99.99 % of minutes good',
    )
    expect(dayText({ day: '2026-11-01', state: 'unknown', good: null })).toBe('Nov 1, 2026: not measured')
    expect(dayText({ day: '2026-11-01', state: 'unknown', good: 1 })).toContain('hardly measured')
  })
  it('is found under the pointer, also at the edges', () => {
    expect([-0.1, 0, 0.5, 0.999, 1, 2].map((across) => dayAt(across, 90))).toEqual([0, 0, 45, 89, 89, 89])
  })
})
