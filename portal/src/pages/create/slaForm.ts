import { z } from 'zod'
import type { Sla } from '@/api'
import { bytes } from '@/format/quantity'
import { majority, replicas } from '@/format/words'

/**
 * The form of a group. Bounds are those of the contract. POST /v1/quotes answers whether the fleet can admit it.
 */
export const REQUEST_SIZE_BYTES_MAX = 1_048_576
export const RATE_PER_S_MAX = 100_000_000
export const DEGREE_MAX = 7
export const PARTITIONS_MAX = 256
export const RETENTION_CHOICES_BYTES = [256 * 2 ** 20, 2 ** 30, 10 * 2 ** 30, 100 * 2 ** 30, 2 ** 40]

const whole = (what: string, max: number, min = 1) =>
  z
    .number({ error: `Enter ${what} as a whole number.` })
    .int(`Enter ${what} as a whole number.`)
    .min(min, `At least ${min}.`)
    .max(max, `At most ${max.toLocaleString('en')}.`)

export const slaSchema = z.object({
  durability: z.enum(['persistent', 'in_memory']),
  replication_degree: z.number().int().min(1).max(DEGREE_MAX),
  min_replicas: z.number().int().min(1).nullable(),
  request_size_bytes: whole('the size', REQUEST_SIZE_BYTES_MAX),
  rate_per_s: whole('the rate', RATE_PER_S_MAX),
  read_rate_per_s: whole('the reads', RATE_PER_S_MAX, 0),
  retention_bytes: z.number().int(),
  latency: z.enum(['standard', 'low']),
  partitions: whole('the number', PARTITIONS_MAX),
})
export const groupSchema = slaSchema.extend({
  name: z.string().trim().min(1, 'Give the group a name.').max(100, 'Use at most 100 characters.'),
})

export type SlaValues = z.infer<typeof slaSchema>
export type GroupValues = z.infer<typeof groupSchema>

export const DEFAULTS: GroupValues = {
  name: '',
  durability: 'persistent',
  replication_degree: 3,
  min_replicas: null,
  request_size_bytes: 64,
  rate_per_s: 5_000,
  read_rate_per_s: 0,
  retention_bytes: RETENTION_CHOICES_BYTES[0] ?? 256 * 2 ** 20,
  latency: 'standard',
  partitions: 1,
}

/** The typed SLA, or null while it is not valid. */
export function slaOf(values: SlaValues): Sla | null {
  const parsed = slaSchema.safeParse(values)
  return parsed.success ? parsed.data : null
}

/** Appends pause with fewer live replicas; default: a majority. */
export function minReplicasOf(values: Pick<SlaValues, 'min_replicas' | 'replication_degree'>): number {
  return Math.min(values.min_replicas ?? majority(values.replication_degree), values.replication_degree)
}

/** The changes from one SLA to another, in words: "rate 120,000/s → 98,000/s". */
export function differences(from: Sla, to: Sla): string[] {
  const changes: string[] = []
  if (from.rate_per_s !== to.rate_per_s) changes.push(`${to.rate_per_s.toLocaleString('en')} requests/s`)
  if ((from.read_rate_per_s ?? 0) !== (to.read_rate_per_s ?? 0))
    changes.push(`${(to.read_rate_per_s ?? 0).toLocaleString('en')} reads/s`)
  if (from.replication_degree !== to.replication_degree) changes.push(replicas(to.replication_degree))
  if (from.request_size_bytes !== to.request_size_bytes)
    changes.push(`${to.request_size_bytes.toLocaleString('en')} bytes a request`)
  const retained = from.retention_bytes ?? to.retention_bytes
  if (to.retention_bytes !== undefined && retained !== to.retention_bytes)
    changes.push(`${bytes(to.retention_bytes)} retained`)
  if ((from.latency ?? 'standard') !== (to.latency ?? 'standard')) changes.push(`${to.latency ?? 'standard'} latency`)
  if (from.durability !== to.durability) changes.push(to.durability === 'persistent' ? 'persistent' : 'in memory')
  return changes
}
