import type { Page } from '@playwright/test'

/** As the browser itself measures a page, in milliseconds; the shift has no unit. */
export interface Speed {
  firstPaint: number
  largestPaint: number
  blocked: number
  shift: number
}

/**
 * Lighthouse 12's curves for desktops: the value with the score 0.9, that with 0.5, and the weight. Its speed index needs a
 * film of the page, so it is left out, and the weights of the others are as much greater.
 */
const CURVES: Record<keyof Speed, [good: number, median: number, weight: number]> = {
  firstPaint: [934, 1_600, 10],
  largestPaint: [1_200, 2_400, 25],
  blocked: [150, 350, 30],
  shift: [0.1, 0.25, 25],
}
const QUANTILE_90 = 1.2815515655446004

/** 0 to 100, by a log-normal curve through the two values. */
export function scoreOf(speed: Speed): number {
  const names = Object.keys(CURVES) as (keyof Speed)[]
  const weights = names.reduce((sum, name) => sum + CURVES[name][2], 0)
  const total = names.reduce((sum, name) => {
    const [good, median, weight] = CURVES[name]
    return sum + weight * share(speed[name], good, median)
  }, 0)
  return (100 * total) / weights
}

function share(value: number, good: number, median: number): number {
  if (value <= 0) return 1
  const sigma = Math.log(median / good) / QUANTILE_90
  return 0.5 * erfc(Math.log(value / median) / (sigma * Math.SQRT2))
}

/** Abramowitz and Stegun, 7.1.26: right to seven digits. */
function erfc(x: number): number {
  const t = 1 / (1 + 0.3275911 * Math.abs(x))
  const poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
  const tail = poly * Math.exp(-x * x)
  return x >= 0 ? tail : 2 - tail
}

/** Watches from the page's begin; call it before the page is opened. */
export async function watchSpeed(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const seen = { largestPaint: 0, blocked: 0, shift: 0 }
    Object.assign(globalThis, { seenSpeed: seen })
    const watch = (
      type: string,
      take: (entry: PerformanceEntry & { value?: number; hadRecentInput?: boolean }) => void,
    ) => new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type, buffered: true })
    watch('largest-contentful-paint', (entry) => (seen.largestPaint = entry.startTime))
    watch('longtask', (entry) => (seen.blocked += Math.max(0, entry.duration - 50)))
    watch('layout-shift', (entry) => (seen.shift += entry.hadRecentInput ? 0 : (entry.value ?? 0)))
  })
}

export async function speedOf(page: Page): Promise<Speed> {
  return page.evaluate(() => {
    const [paint] = performance.getEntriesByName('first-contentful-paint')
    const seen = (globalThis as unknown as { seenSpeed: Omit<Speed, 'firstPaint'> }).seenSpeed
    return { firstPaint: paint?.startTime ?? 0, ...seen }
  })
}
