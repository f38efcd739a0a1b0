import type { MovingGroup, Pressure } from '@/api'
import { word } from '@/format/words'
import { RESOURCES } from '../fleet/resources'

type Relocation = MovingGroup['relocation']
export type NameOf = (serverId: number) => string

const CAUSES: Record<string, string> = {
  resize: 'The group grows beyond its servers',
  demand: 'A partition wants more than its server has free',
  capacity: 'The server can do less than it has promised',
  operator: 'An operator asked for it',
}

export function whyItMoves(cause: string): string {
  return CAUSES[cause] ?? word(cause)
}

/** "s1 → s4, then s2 → s5", or what it waits for. */
export function stepsOf({ moves, scarce_resource }: Relocation, nameOf: NameOf): string {
  if (moves.length > 0)
    return moves.map((one) => `${nameOf(one.from_server)} → ${nameOf(one.to_server)}`).join(', then ')
  return scarce_resource ? `Waits for room: ${word(scarce_resource)}` : 'Waits for room'
}

/** "0.4 cores, 11.4 MiB/s": only what is lacking. */
export function lackingInWords(lacking: Pressure['lacking']): string {
  const amounts = { ...lacking, memory_bytes: null, disk_bytes: null }
  const parts = RESOURCES.flatMap((resource) => {
    const value = resource.of(amounts)
    return value !== null && value > 0 ? [resource.show(value)] : []
  })
  return parts.join(', ') || 'nothing any more'
}
