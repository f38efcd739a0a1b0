import type { Amounts } from '@/api'
import { bytes, compact } from '@/format/quantity'

export const RESOURCES = [
  {
    name: 'cpu',
    label: 'CPU',
    of: (amounts: Amounts) => amounts.cpu,
    show: (value: number) => `${value.toFixed(1)} cores`,
  },
  {
    name: 'network',
    label: 'Network',
    of: (amounts: Amounts) => amounts.network_bytes_per_s,
    show: (value: number) => `${bytes(value)}/s`,
  },
  {
    name: 'storage_io',
    label: 'Storage IO',
    of: (amounts: Amounts) => amounts.storage_io_per_s,
    show: (value: number) => `${compact(value)}/s`,
  },
  { name: 'memory', label: 'Memory', of: (amounts: Amounts) => amounts.memory_bytes ?? null, show: bytes },
  { name: 'disk', label: 'Disk', of: (amounts: Amounts) => amounts.disk_bytes ?? null, show: bytes },
] as const

export type Resource = (typeof RESOURCES)[number]

interface Use {
  promisable: Amounts
  allocated: Amounts
}

/** The promised part of what may be promised, 0 to 1 and above; null where it is not known. */
export function promisedPart({ promisable, allocated }: Use, resource: Resource): number | null {
  const [whole, part] = [resource.of(promisable), resource.of(allocated)]
  return whole === null || part === null ? null : whole > 0 ? part / whole : part > 0 ? 1 : 0
}

/** The resource of which most is promised: what admission lacks first. */
export function scarcest(use: Use): { resource: Resource; part: number } | null {
  const parts = RESOURCES.map((resource) => ({ resource, part: promisedPart(use, resource) }))
  const known = parts.filter((each): each is { resource: Resource; part: number } => each.part !== null)
  return known.toSorted((a, b) => b.part - a.part)[0] ?? null
}
