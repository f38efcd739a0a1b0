import type { Group, Resize, Sla } from '@/api'
import { slaOf, type GroupValues } from '@/pages/create/slaForm'

/** The form's values at its begin: the group as it is. */
export function valuesOf(group: Group): GroupValues {
  const { sla } = group
  return {
    name: group.name,
    durability: sla.durability,
    replication_degree: sla.replication_degree,
    min_replicas: sla.min_replicas ?? null,
    request_size_bytes: sla.request_size_bytes,
    rate_per_s: sla.rate_per_s,
    read_rate_per_s: sla.read_rate_per_s ?? 0,
    retention_bytes: sla.retention_bytes,
    latency: sla.latency ?? 'standard',
    partitions: group.partitions ?? 1,
  }
}

const RESIZED = [
  'min_replicas',
  'request_size_bytes',
  'rate_per_s',
  'read_rate_per_s',
  'retention_bytes',
  'latency',
] as const

/** The call's body: changed values alone, so that another person's change of another field stays. */
export function changesOf(group: Group, values: GroupValues): Resize {
  const present = valuesOf(group)
  return Object.fromEntries(
    RESIZED.filter((field) => values[field] !== present[field]).map((field) => [field, values[field]]),
  )
}

/** The SLA to quote: the group's own reservation does not count against it. Null while a value is wrong. */
export function quotedSla(group: Group, values: GroupValues): Sla | null {
  const typed = slaOf(values)
  if (!typed) return null
  const { region, retention_age_s } = group.sla
  return { ...typed, region, retention_age_s, project_id: group.project_id, replaces_group_id: group.id }
}

/** Why the group cannot be resized at all now, if it cannot. */
export function hindranceOf(group: Group): string | undefined {
  if (typeof group.partition_of === 'string') return 'It is a partition: resize the group that it is a partition of.'
  if (group.resizing) return 'A resize is under way. It ends when replicas have moved.'
  if (group.status === 'provisioning') return 'It is being placed. Try again in a moment.'
  if (group.status === 'lost') return 'It is lost. Reset it first.'
  if (group.status === 'deleting' || group.status === 'deleted') return 'It is being deleted.'
  return undefined
}
