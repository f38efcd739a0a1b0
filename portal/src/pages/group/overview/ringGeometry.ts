/** Geometry of the ring's drawing. Pure. Units are those of the SVG's view box. */
export const CENTRE = 150
export const RING_R = 92
export const NODE_R = 27

export interface Point {
  x: number
  y: number
}

/** The drawing's extent: the ring and its nodes, and a margin if learners are outside. */
export function viewBox(withLearners: boolean): string {
  const reach = withLearners ? RING_R * 1.68 + NODE_R : RING_R + NODE_R + 3
  return `${CENTRE - reach} ${CENTRE - reach} ${2 * reach} ${2 * reach}`
}

/** Place `index` of `total`, clockwise from the top; `reach` scales the distance from the centre. */
export function nodeAt(index: number, total: number, reach = 1): Point {
  return onRing(angleOf(index, total), RING_R * reach)
}

/** The arc from a node to the next, without the part that the nodes cover (nothing is left out for gap 0). */
export function arc(index: number, total: number, gap = NODE_R + 5): string {
  const margin = 2 * Math.asin(gap / (2 * RING_R))
  const from = onRing(angleOf(index, total) + margin, RING_R)
  const to = onRing(angleOf(index + 1, total) - margin, RING_R)
  const large = (2 * Math.PI) / total - 2 * margin > Math.PI ? 1 : 0
  return `M ${fixed(from.x)} ${fixed(from.y)} A ${RING_R} ${RING_R} 0 ${large} 1 ${fixed(to.x)} ${fixed(to.y)}`
}

function angleOf(index: number, total: number): number {
  return (index / total) * 2 * Math.PI - Math.PI / 2
}

function onRing(angle: number, radius: number): Point {
  return { x: CENTRE + radius * Math.cos(angle), y: CENTRE + radius * Math.sin(angle) }
}

function fixed(value: number): number {
  return Math.round(value * 100) / 100
}
