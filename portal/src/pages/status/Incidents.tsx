import type { StatusIncident } from '@/api'
import { Badge } from '@/ui/StatusBadge'
import { Minute } from '@/ui/Time'
import { COMPONENTS, PHASES, STATE_NAMES, STATE_TONES } from './words'

/** Incidents that are open, with their whole timeline. */
export function OpenIncidents({ incidents }: { incidents: StatusIncident[] }) {
  if (incidents.length === 0) return null
  return (
    <section aria-labelledby="open-incidents" className="space-y-4">
      <h2 id="open-incidents" className="text-[15px] font-semibold">
        {incidents.length === 1 ? 'Open incident' : 'Open incidents'}
      </h2>
      {incidents.map((incident) => (
        <article
          key={incident.id}
          id={`incident-${incident.id}`}
          className={`scroll-mt-6 rounded-2xl border bg-surface p-5 sm:p-6 ${incident.impact === 'outage' ? 'border-danger' : 'border-warn'}`}
        >
          <div className="flex flex-wrap items-start justify-between gap-x-4 gap-y-2">
            <h3 className="min-w-0 text-base font-semibold break-words">{incident.title}</h3>
            <Badge tone={STATE_TONES[incident.impact]}>{STATE_NAMES[incident.impact]}</Badge>
          </div>
          <Affected incident={incident} />
          <Timeline incident={incident} />
        </article>
      ))}
    </section>
  )
}

/** Incidents that are over. Their timelines open on demand. */
export function PastIncidents({ incidents }: { incidents: StatusIncident[] }) {
  return (
    <section aria-labelledby="past-incidents">
      <h2 id="past-incidents" className="text-[15px] font-semibold">
        Past incidents
      </h2>
      {incidents.length === 0 ? (
        <p className="mt-3 rounded-2xl border border-dashed border-line-strong px-6 py-8 text-center text-sm text-ink-2">
          No incident was told in the last 90 days.
        </p>
      ) : (
        <ol className="mt-3 divide-y divide-line rounded-2xl border border-line bg-surface px-5 sm:px-6">
          {incidents.map((incident) => (
            <li key={incident.id} id={`incident-${incident.id}`} className="scroll-mt-6 py-4">
              <details>
                <summary className="rounded text-sm">
                  <span className="font-medium break-words">{incident.title}</span>
                  <span className="mt-0.5 block text-[13px] text-ink-3">
                    {STATE_NAMES[incident.impact]} · <Minute at={incident.opened_at} />
                    {incident.resolved_at && (
                      <>
                        {' to '}
                        <Minute at={incident.resolved_at} />
                      </>
                    )}
                  </span>
                </summary>
                <Affected incident={incident} />
                <Timeline incident={incident} />
              </details>
            </li>
          ))}
        </ol>
      )}
    </section>
  )
}

function Affected({ incident }: { incident: StatusIncident }) {
  const components = incident.components.map((each) => COMPONENTS[each].name).join(', ')
  return (
    <p className="mt-1 text-[13px] text-ink-3">
      {components} · {incident.regions.length === 1 ? 'region' : 'regions'} {incident.regions.join(', ')}
    </p>
  )
}

function Timeline({ incident }: { incident: StatusIncident }) {
  return (
    <ol aria-label={`Updates of ${incident.title}`} className="mt-4 space-y-4 border-l border-line pl-4">
      {incident.updates.map((update) => (
        <li key={update.id} className="text-sm">
          <p className="flex flex-wrap gap-x-3">
            <span className="font-medium">{PHASES[update.phase]}</span>
            <span className="text-[13px] leading-[1.6] text-ink-3">
              <Minute at={update.at} />
            </span>
          </p>
          <p className="mt-0.5 leading-relaxed break-words whitespace-pre-line text-ink-2">{update.message}</p>
        </li>
      ))}
    </ol>
  )
}
