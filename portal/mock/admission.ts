import type { ObservedSla, Price, Quote, Refusal, ReplicaDemand, SlaPromise } from '@/api'

/** Admission of a small fleet. It gives every kind of answer that the real one gives. Pure. */
const SERVERS = 5
const FREE = {
  cpu: 6,
  network_bytes_per_s: 400e6,
  storage_io_per_s: 40_000,
  memory_bytes: 2 ** 33,
  disk_bytes: 2 ** 38,
}
const SHARD_PEAK_PER_S = 250_000
const HOURS_PER_MONTH = 730

export function demandOf(sla: ObservedSla): ReplicaDemand[] {
  return Array.from({ length: sla.replication_degree }, (_, position) => ({
    role: roleAt(position, sla.replication_degree),
    cpu: round((sla.rate_per_s * (position === 0 ? 9e-6 : 5e-6) + readsPerReplica(sla) * 2e-6) * headroom(sla), 4),
    network_bytes_per_s: Math.round(
      (sla.rate_per_s * (position === 0 ? 2 : 1) + readsPerReplica(sla)) *
        headroom(sla) *
        (sla.request_size_bytes + 40),
    ),
    storage_io_per_s: sla.durability === 'persistent' ? Math.min(2_000, Math.ceil(sla.rate_per_s / 50)) : 0,
    ...spaceOf(sla),
  }))
}

function readsPerReplica(sla: ObservedSla): number {
  return (sla.read_rate_per_s ?? 0) / (sla.min_replicas ?? Math.floor(sla.replication_degree / 2) + 1)
}

function headroom(sla: ObservedSla): number {
  return sla.latency === 'low' ? 2 : 1
}

/** What is retained takes memory or disk for as long as the group exists. */
function spaceOf(sla: ObservedSla) {
  const batches = Math.ceil(sla.retention_bytes / (sla.request_size_bytes + 260))
  return sla.durability === 'persistent'
    ? { memory_bytes: batches * 256 + 2 ** 19, disk_bytes: sla.retention_bytes + 2 ** 25 }
    : { memory_bytes: Math.ceil(sla.retention_bytes * 1.25) + 2 ** 19, disk_bytes: 0 }
}

export function roleAt(position: number, degree: number): string {
  if (degree === 1) return 'sole'
  if (position === 0) return 'head'
  return position === degree - 1 ? 'tail' : 'follower'
}

export function priceOf(sla: ObservedSla): Price {
  const total = totalOf(demandOf(sla))
  const lines = [
    line('cpu', total.cpu, 'core', 80_000),
    line('network', total.network_bytes_per_s / 1e6, 'MB/s', 500),
    line('storage_io', total.storage_io_per_s / 1e3, '1000 operations/s', 12_000),
  ]
  const hourly_micros = lines.reduce((sum, each) => sum + each.hourly_micros, 0)
  return { hourly_micros, monthly_micros: hourly_micros * HOURS_PER_MONTH, currency: 'USD', lines, usage: USAGE }
}

const USAGE: Price['usage'] = [
  {
    kind: 'appends',
    label: 'Appended entries',
    per: 'million entries',
    unit: 'entry',
    price_quantity: 1_000_000,
    unit_price_micros: 150_000,
  },
  {
    kind: 'reads',
    label: 'Read entries',
    per: 'million entries',
    unit: 'entry',
    price_quantity: 1_000_000,
    unit_price_micros: 20_000,
  },
  {
    kind: 'egress',
    label: 'Read bytes',
    per: 'GB',
    unit: 'byte',
    price_quantity: 1_000_000_000,
    unit_price_micros: 50_000,
  },
  {
    kind: 'storage',
    label: 'Storage',
    per: 'GB-month',
    unit: 'megabyte_second',
    price_quantity: 2_628_000_000,
    unit_price_micros: 120_000,
  },
]

function line(resource: string, quantity: number, unit: string, unitPriceMicros: number) {
  return {
    resource,
    quantity,
    unit,
    unit_price_micros: unitPriceMicros,
    hourly_micros: Math.ceil(quantity * unitPriceMicros),
  }
}

function totalOf(replicas: ReplicaDemand[]) {
  const sum = (pick: (each: ReplicaDemand) => number) => replicas.reduce((total, each) => total + pick(each), 0)
  return {
    cpu: sum((each) => each.cpu),
    network_bytes_per_s: sum((each) => each.network_bytes_per_s),
    storage_io_per_s: sum((each) => each.storage_io_per_s),
    memory_bytes: sum((each) => each.memory_bytes ?? 0),
    disk_bytes: sum((each) => each.disk_bytes ?? 0),
  }
}

export function quoteOf(sla: ObservedSla): Quote {
  const refusal = refusalOf(sla)
  const replicas = demandOf(sla)
  return {
    admissible: refusal === null,
    price: priceOf(sla),
    promise: promiseOf(sla),
    demand: { replicas, total: totalOf(replicas), dominant_resource: 'cpu' },
    moves: 0,
    refusal,
  }
}

/** The bounds of the contract at 64 bytes; the service computes the others. */
export function promiseOf(sla: ObservedSla): SlaPromise {
  const bounds = { standard: { in_memory: 2_000, persistent: 5_000 }, low: { in_memory: 1_000, persistent: 2_500 } }
  return { availability: 0.9995, latency_p99_us: bounds[sla.latency ?? 'standard'][sla.durability] }
}

function refusalOf(sla: ObservedSla): Refusal | null {
  if (sla.replication_degree > SERVERS) {
    const message = `${sla.replication_degree} replicas need as many servers; the fleet has ${SERVERS}.`
    const fits = { ...sla, replication_degree: SERVERS, min_replicas: null }
    return { reason: 'too_few_servers', scarce_resource: 'servers', message, largest_sla_that_fits: fitting(fits) }
  }
  const scarce = scarceOf(sla)
  if (!scarce) return null
  const fits = fitting(sla)
  const message =
    scarce === 'shard'
      ? `One core can order at most ${SHARD_PEAK_PER_S} requests a second; this group asks for ${sla.rate_per_s}.`
      : `No ${sla.replication_degree} servers have enough ${scarce.replace('_', ' ')} left for this group.`
  return {
    reason: scarce === 'shard' ? 'beyond_shard_peak' : 'insufficient_capacity',
    scarce_resource: scarce,
    message,
    largest_sla_that_fits: fits,
  }
}

function scarceOf(sla: ObservedSla): string | null {
  const head = demandOf(sla)[0]
  if (!head) return 'servers'
  if (sla.rate_per_s > SHARD_PEAK_PER_S) return 'shard'
  if (head.network_bytes_per_s > FREE.network_bytes_per_s) return 'network'
  if (head.cpu > FREE.cpu) return 'cpu'
  if (head.storage_io_per_s > FREE.storage_io_per_s) return 'storage_io'
  const { memory_bytes, disk_bytes } = spaceOf(sla)
  if (memory_bytes > FREE.memory_bytes) return 'memory'
  return disk_bytes > FREE.disk_bytes ? 'disk' : null
}

/** A rate that fits, in two significant digits; null if not even one request a second does. Where the retention is what
 * does not fit, half of it, or half of that, and so on. */
function fitting(sla: ObservedSla): ObservedSla | null {
  const scarce = scarceOf(sla)
  if (scarce === 'memory' || scarce === 'disk') {
    const retention_bytes = Math.floor(sla.retention_bytes / 2)
    return retention_bytes < 2 ** 20 ? null : fittingOrItself({ ...sla, retention_bytes })
  }
  let low = 0
  let high = sla.rate_per_s
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (scarceOf({ ...sla, rate_per_s: middle })) high = middle - 1
    else low = middle
  }
  if (low === 0) return null
  const step = 10 ** Math.max(0, Math.floor(Math.log10(low)) - 1)
  return { ...sla, rate_per_s: Math.floor(low / step) * step }
}

function fittingOrItself(sla: ObservedSla): ObservedSla | null {
  return scarceOf(sla) ? fitting(sla) : sla
}

function round(value: number, decimals: number): number {
  return Math.round(value * 10 ** decimals) / 10 ** decimals
}
