import type { StatusComponent, StatusRegion } from '@/api'
import { percent } from '@/format/quantity'
import { Badge } from '@/ui/StatusBadge'
import { DayBars } from './DayBars'
import { COMPONENTS, ORDER, STATE_NAMES, STATE_TONES } from './words'

/** A region's components, each with its state now and its last days. */
export function Region({ region, components, state }: StatusRegion) {
  const sorted = components.toSorted((left, right) => ORDER.indexOf(left.component) - ORDER.indexOf(right.component))
  return (
    <section aria-label={`Region ${region}`} className="rounded-2xl border border-line bg-surface">
      <div className="flex items-center justify-between gap-4 px-5 pt-5 sm:px-6">
        <h2 className="text-[15px] font-semibold">
          Region <span className="font-mono font-medium">{region}</span>
        </h2>
        <Badge tone={STATE_TONES[state]}>{STATE_NAMES[state]}</Badge>
      </div>
      <ul className="divide-y divide-line px-5 sm:px-6">
        {sorted.map((component) => (
          <Component key={component.component} component={component} />
        ))}
      </ul>
    </section>
  )
}

function Component({ component }: { component: StatusComponent }) {
  const { name, what } = COMPONENTS[component.component]
  return (
    <li className="py-5">
      <div className="flex flex-wrap items-center justify-between gap-x-4 gap-y-1">
        <h3 className="text-sm font-medium" title={what}>
          {name}
        </h3>
        <State state={component.state} />
      </div>
      <p className="mt-0.5 text-[13px] text-ink-3">{component.detail}</p>
      <DayBars name={name} days={component.days} summary={summary(component)} />
    </li>
  )
}

const DOTS: Record<StatusComponent['state'], string> = {
  operational: 'bg-accent',
  degraded: 'bg-warn',
  outage: 'bg-danger',
  unknown: 'border border-ink-3',
}

function State({ state }: { state: StatusComponent['state'] }) {
  return (
    <span className="inline-flex items-center gap-2 text-[13px] text-ink-2">
      <span aria-hidden className={`size-2 rounded-full ${DOTS[state]}`} />
      {STATE_NAMES[state]}
    </span>
  )
}

function summary({ good_24h, good_90d }: StatusComponent): string {
  if (good_90d === null) return 'Not measured yet'
  const whole = `${percent(good_90d)} in 90 days`
  return good_24h === null ? whole : `${percent(good_24h)} in 24 h · ${whole}`
}
