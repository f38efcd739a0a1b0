import uPlot from 'uplot'

export interface Line {
  label: string
  /** Name of a colour token, without the dashes. */
  token: string
  /** One value for each time. Null leaves a gap. */
  values: (number | null)[]
  dashed?: boolean
  filled?: boolean
  /** Draw no line along zero, where there is nothing of what the line is about. */
  hidesZero?: boolean
  /** A bar for each time. The first line's bars are in front of the others'. */
  bars?: boolean
}

interface Options {
  lines: Line[]
  width: number
  height: number
  format: (value: number) => string
  /** Whether times are days in UTC. */
  days?: boolean
  /** Least upper end of the vertical axis, so that a quiet log does not look busy. */
  ceiling: number
  element: HTMLElement
  onCursor: (index: number | null) => void
}

/** Painted in reverse, so that the first and most important series is on top. */
export function paintOrder<T>(lines: T[]): T[] {
  return lines.toReversed()
}

/** The values to draw. A line that hides zero keeps the zeros beside other values, from which it rises. */
export function drawn({ values, hidesZero }: Line): (number | null)[] {
  if (!hidesZero) return values
  return values.map((value, index) => (value === 0 && !values[index - 1] && !values[index + 1] ? null : value))
}

/** Indices of values without neighbours. A line needs two points, so these are drawn as points. */
export function isolated(values: ArrayLike<number | null | undefined>): number[] {
  return Array.from({ length: values.length }, (_, index) => index).filter(
    (index) => isThere(values[index]) && !isThere(values[index - 1]) && !isThere(values[index + 1]),
  )
}

function isThere(value: number | null | undefined): value is number {
  return value !== null && value !== undefined
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

export function chartOptions(options: Options): uPlot.Options {
  const { lines, width, height, format, days, ceiling, element, onCursor } = options
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
      { ...axis, grid: { show: false }, size: 30, space: 76, gap: 8, ...(days ? DAY_AXIS : { values: timeLabels }) },
      { ...axis, grid, size: 54, gap: 8, space: 44, values: (_chart, splits) => splits.map(format) },
    ],
    series: [{}, ...paintOrder(lines).map((line) => seriesOf(line, element))],
    hooks: { setCursor: [(chart) => onCursor(chart.cursor.idx ?? null)] },
  }
}

function seriesOf(line: Line, element: HTMLElement): uPlot.Series {
  const colour = tokenColour(element, line.token)
  if (line.bars) {
    const paths = uPlot.paths.bars?.({ size: [0.64, 26], radius: 0.12 })
    return { label: line.label, fill: colour, width: 0, points: { show: false }, ...(paths ? { paths } : {}) }
  }
  return {
    label: line.label,
    stroke: colour,
    width: LINE_PX,
    points: { show: false, size: 5, fill: colour, filter: (chart, series) => isolated(chart.data[series] ?? []) },
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

const DAY_LABEL = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric', timeZone: 'UTC' })
const DAY_LABEL_PX = 64

/** Labels of days that have a value, as many as there is room for. */
const DAY_AXIS: uPlot.Axis = {
  splits: (chart) => {
    const times = [...(chart.data[0] ?? [])]
    const scale_s = (chart.scales.x?.max ?? 0) - (chart.scales.x?.min ?? 0)
    const each_px = (chart.bbox.width / devicePixelRatio / Math.max(1, scale_s)) * 86_400
    const step = Math.max(1, Math.ceil(DAY_LABEL_PX / Math.max(1, each_px)))
    return times.filter((_time, index) => index % step === 0)
  },
  values: (_chart, splits) => splits.map(dayLabel),
}

export function dayLabel(seconds: number): string {
  return DAY_LABEL.format(new Date(seconds * 1_000))
}

export function clockSeconds(seconds: number): string {
  return CLOCK_SECONDS.format(new Date(seconds * 1_000))
}
