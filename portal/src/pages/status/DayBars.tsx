import { useState, type KeyboardEvent, type PointerEvent } from 'react'
import type { StatusDay } from '@/api'
import { dayAt, dayText, type State } from './words'

const COLOURS: Record<State, string> = {
  operational: 'var(--accent)',
  degraded: 'var(--warn)',
  outage: 'var(--danger)',
  unknown: 'var(--line-strong)',
}
/** Heights in percent. An unknown day is a low mark, so that it differs from the others without colours too. */
const HEIGHTS: Record<State, number> = { operational: 100, degraded: 100, outage: 100, unknown: 24 }
const STEP = 10
const GAP = 3
const KEYS: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageDown: -7, PageUp: 7 }

interface Props {
  /** The component's name, for screen readers. */
  name: string
  days: StatusDay[]
  /** Shown while no day is chosen. */
  summary: string
}

/**
 * A bar for each day. A pointer over it, a finger on it or the arrow keys choose a day, whose text stands below. It is
 * one slider for the keyboard: ninety stops of the tab key would be in the way.
 */
export function DayBars({ name, days, summary }: Props) {
  const [chosen, setChosen] = useState<number | null>(null)
  const shown = chosen === null ? undefined : days[chosen]
  const last = days.length - 1
  const point = (event: PointerEvent<HTMLDivElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect()
    setChosen(dayAt((event.clientX - left) / width, days.length))
  }
  const press = (event: KeyboardEvent) => {
    const by = KEYS[event.key]
    const at = event.key === 'Home' ? 0 : event.key === 'End' ? last : by === undefined ? null : (chosen ?? last) + by
    if (at === null) return
    event.preventDefault()
    setChosen(Math.min(last, Math.max(0, at)))
  }
  const current = days[chosen ?? last]
  return (
    <div className="mt-3">
      <div
        role="slider"
        tabIndex={0}
        aria-label={`${name}: days`}
        aria-valuemin={0}
        aria-valuemax={last}
        aria-valuenow={chosen ?? last}
        aria-valuetext={current ? dayText(current) : 'no days'}
        onPointerMove={point}
        onPointerDown={point}
        onPointerLeave={() => setChosen(null)}
        onFocus={() => setChosen((had) => had ?? last)}
        onBlur={() => setChosen(null)}
        onKeyDown={press}
        className="rounded-sm"
      >
        <svg
          aria-hidden
          viewBox={`0 0 ${days.length * STEP - GAP} 100`}
          preserveAspectRatio="none"
          className="h-9 w-full"
        >
          {days.map(({ day, state }, index) => (
            <rect
              key={day}
              x={index * STEP}
              y={100 - HEIGHTS[state]}
              width={STEP - GAP}
              height={HEIGHTS[state]}
              fill={COLOURS[state]}
              opacity={chosen === null || chosen === index ? 1 : 0.4}
            />
          ))}
        </svg>
      </div>
      <p className="nums mt-1.5 flex justify-between gap-3 text-xs text-ink-3">
        {shown ? (
          <span className="mx-auto text-ink-2">{dayText(shown)}</span>
        ) : (
          <>
            <span>{days.length} days ago</span>
            <span className="text-ink-2">{summary}</span>
            <span>Today</span>
          </>
        )}
      </p>
    </div>
  )
}
