import type uPlot from 'uplot'

export interface Line {
  label: string
  /** Name of a colour token, without the dashes. */
  token: string
  /** One value for each time. Null leaves a gap. */
  values: (number | null)[]
  dashed?: boolean
  filled?: boolean
}

interface Options {
  lines: Line[]
  width: number
  height: number
  format: (value: number) => string
  /** Least upper end of the vertical axis, so that a quiet log does not look busy. */
  ceiling: number
  element: HTMLElement
  onCursor: (index: number | null) => void
}

/** Painted in reverse, so that the first and most important series is on top. */
export function paintOrder<T>(lines: T[]): T[] {
  return lines.toReversed()
}

/** A token's current colour: canvases need a plain colour, and tokens depend on the theme. */
export function tokenColour(element: HTMLElement, token: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(--${token})`
  element.append(probe)
  const colour = getComputedStyle(probe).color
  probe.remove()
  return colour
}

const FONT = '12px "Geist Variable", system-ui, sans-serif'
const LINE_PX = 1.75

export function chartOptions({ lines, width, height, format, ceiling, element, onCursor }: Options): uPlot.Options {
  const grid = { stroke: tokenColour(element, 'chart-grid'), width: 1 }
  const axis = { stroke: tokenColour(element, 'ink-3'), font: FONT, ticks: { show: false } }
  return {
    width,
    height,
    padding: [10, 28, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7, width: 2 } },
    scales: { x: { time: true }, y: { range: (_chart, _low, high) => [0, Math.max(ceiling, (high ?? 0) * 1.12)] } },
    axes: [
      { ...axis, grid: { show: false }, size: 30, space: 76, gap: 8, values: timeLabels },
      { ...axis, grid, size: 54, gap: 8, space: 44, values: (_chart, splits) => splits.map(format) },
    ],
    series: [{}, ...paintOrder(lines).map((line) => seriesOf(line, element))],
    hooks: { setCursor: [(chart) => onCursor(chart.cursor.idx ?? null)] },
  }
}

function seriesOf(line: Line, element: HTMLElement): uPlot.Series {
  const colour = tokenColour(element, line.token)
  return {
    label: line.label,
    stroke: colour,
    width: LINE_PX,
    // A line needs two points. A single one is shown as a point.
    points: { show: (_chart, _series, first, last) => last - first < 2, size: 5, fill: colour },
    ...(line.dashed ? { dash: [5, 5] } : {}),
    ...(line.filled ? { fill: withAlpha(colour, 0.09) } : {}),
  }
}

function withAlpha(colour: string, alpha: number): string {
  const parts = /rgba?\(([^)]+)\)/
    .exec(colour)?.[1]
    ?.split(/[\s,/]+/)
    .slice(0, 3)
  return parts ? `rgba(${parts.join(', ')}, ${alpha})` : colour
}

const CLOCK = new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
const CLOCK_SECONDS = new Intl.DateTimeFormat('en', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})

function timeLabels(_chart: uPlot, splits: number[]): string[] {
  const step = (splits[1] ?? 0) - (splits[0] ?? 0)
  const clock = step > 0 && step < 60 ? CLOCK_SECONDS : CLOCK
  return splits.map((seconds) => clock.format(new Date(seconds * 1_000)))
}

export function clockSeconds(seconds: number): string {
  return CLOCK_SECONDS.format(new Date(seconds * 1_000))
}
