import { useEffect, useLayoutEffect, useRef, useState } from 'react'
import UPlot from 'uplot'
import { useShownTheme } from '@/theme'
import { chartOptions, clockSeconds, dayLabel, drawn, paintOrder, type Line } from './chartOptions'

interface Props {
  /** A sentence with the chart's current values, for screen readers. */
  description: string
  /** Seconds since 1970, ascending. */
  times: number[]
  lines: Line[]
  /** Short format for the vertical axis. */
  format: (value: number) => string
  /** Format for the legend; default: the axis' format. */
  formatValue?: (value: number) => string
  ceiling?: number
  height?: number
  /** Whether times are days in UTC, and not moments. */
  days?: boolean
  /** Begin and end of the horizontal axis, in seconds since 1970; default: those of the data. */
  range_s?: { from: number; to: number }
  /** Longest span of a moving chart's horizontal axis, in seconds. It ends at the last time. */
  span_s?: number
}

/** Least span of a moving chart, so that its first samples are wide enough to see. */
const SPAN_S_MIN = 20

/** A time series on a canvas. The text legend below shows the values at the cursor, else the latest ones. */
export function TimeChart({
  description,
  times,
  lines,
  format,
  formatValue,
  ceiling = 1,
  height = 220,
  days = false,
  range_s,
  span_s,
}: Props) {
  const holder = useRef<HTMLDivElement>(null)
  const chart = useRef<UPlot | null>(null)
  const [cursor, setCursor] = useState<number | null>(null)
  const theme = useShownTheme()
  // Changes that need a new chart. New data alone is handed to the existing one.
  const shape = JSON.stringify([
    theme,
    height,
    ceiling,
    days,
    lines.map(({ label, token, dashed, filled, bars }) => [label, token, dashed, filled, bars]),
  ])
  const latest = useRef({ lines, format, ceiling, days })
  useLayoutEffect(() => {
    latest.current = { lines, format, ceiling, days }
  })

  useEffect(() => {
    const element = holder.current
    if (!element) return undefined
    const options = chartOptions({
      ...latest.current,
      width: element.clientWidth,
      height,
      element,
      onCursor: setCursor,
    })
    const made = new UPlot(options, [[], ...latest.current.lines.map(() => [])], element)
    chart.current = made
    const watch = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }))
    watch.observe(element)
    return () => {
      watch.disconnect()
      made.destroy()
      chart.current = null
    }
  }, [shape, height])

  useEffect(() => {
    const made = chart.current
    if (!made) return
    made.batch(() => {
      made.setData([times, ...paintOrder(lines).map(drawn)] as UPlot.AlignedData, true)
      const last = times.at(-1)
      const known_s = (last ?? 0) - (times[0] ?? 0)
      if (span_s && last) {
        made.setScale('x', { min: last - Math.min(span_s, Math.max(known_s, SPAN_S_MIN)), max: last })
      }
      if (range_s) made.setScale('x', { min: range_s.from, max: range_s.to })
    })
  }, [times, lines, span_s, range_s, shape])

  const shown = cursor === null || cursor >= times.length ? times.length - 1 : cursor
  return (
    <figure>
      <div ref={holder} role="img" aria-label={description} style={{ height }} className="w-full overflow-hidden" />
      <figcaption className="mt-3 flex flex-wrap items-baseline gap-x-5 gap-y-1 text-[13px]">
        {lines.map((line) => (
          <span key={line.label} className="inline-flex items-center gap-2">
            <Swatch line={line} />
            <span className="text-ink-2">{line.label}</span>
            <span className="nums font-medium">{text(line.values[shown], formatValue ?? format)}</span>
          </span>
        ))}
        <span className="nums ml-auto text-ink-3">
          {cursor !== null && times[shown] !== undefined ? (days ? dayLabel : clockSeconds)(times[shown]) : ''}
        </span>
      </figcaption>
    </figure>
  )
}

function text(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? '–' : format(value)
}

function Swatch({ line }: { line: Line }) {
  return (
    <svg aria-hidden viewBox="0 0 14 4" className="h-1 w-3.5">
      <line
        x1="0"
        y1="2"
        x2="14"
        y2="2"
        stroke={`var(--${line.token})`}
        strokeWidth="3"
        strokeDasharray={line.dashed ? '4 3' : undefined}
      />
    </svg>
  )
}
