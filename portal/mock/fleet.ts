import type { Amounts, Server, Tenant } from '@/api'
import { uuid } from './records'

const GIB = 2 ** 30
const amounts = (part: number): Amounts => ({
  cpu: 8 * part,
  network_bytes_per_s: 3e9 * part,
  storage_io_per_s: 40_000 * part,
  memory_bytes: 64 * GIB * part,
  disk_bytes: 900 * GIB * part,
})

function server(n: number, allocated: number, more: Partial<Server> = {}, nowMs = 0): Server {
  return {
    server_id: n,
    name: `s${String(n)}`,
    address: `10.0.0.${String(n)}:7500`,
    region: 'eu-north',
    failure_domain: `rack-${'abc'[n % 3] ?? 'a'}`,
    auxiliary: false,
    alive: true,
    storage_fault: null,
    version: '0.1.0',
    resources: {
      nominal: amounts(1.25),
      promisable: amounts(1),
      allocated: amounts(allocated),
      free: amounts(1 - allocated),
    },
    replicas: Math.round(allocated * 60),
    slow: null,
    machine: '8 × EPYC',
    foreign: null,
    takes_replicas: true,
    draining: false,
    drain: null,
    estimated: null,
    registered_at: new Date(nowMs - 40 * 86_400_000).toISOString(),
    failed_at: null,
    ...more,
  }
}

export function seedServers(nowMs: number): Server[] {
  return [
    server(1, 0.62, {}, nowMs),
    server(2, 0.91, {}, nowMs),
    server(3, 0.35, { slow: 'commits take 9 ms, others 0.4 ms' }, nowMs),
    server(4, 0, { alive: false, failed_at: new Date(nowMs - 3_600_000).toISOString() }, nowMs),
  ]
}

/** The sums of all servers that live. */
export function capacityOf(servers: Server[]) {
  const alive = servers.filter((each) => each.alive)
  const sum = (of: 'nominal' | 'promisable' | 'allocated' | 'free'): Amounts => {
    const names = ['cpu', 'network_bytes_per_s', 'storage_io_per_s', 'memory_bytes', 'disk_bytes'] as const
    const pairs = names.map((name) => [name, alive.reduce((all, each) => all + (each.resources[of][name] ?? 0), 0)])
    return Object.fromEntries(pairs) as Amounts
  }
  return {
    nominal: sum('nominal'),
    promisable: sum('promisable'),
    allocated: sum('allocated'),
    free: sum('free'),
    servers_alive: alive.length,
    safety_factor: 0.8,
    profile_version: 'default',
    profile_provisional: true,
  }
}

export function seedTenants(nowMs: number): Tenant[] {
  const tenant = (n: number, name: string, more: Partial<Tenant>): Tenant => ({
    id: uuid(n),
    name,
    created_at: new Date(nowMs - n * 86_400_000).toISOString(),
    standing: 'active',
    members: 3,
    groups: 5,
    rate_per_s: 123_000,
    hourly_micros: 1_234_000,
    ...more,
  })
  return [
    tenant(8, 'Example Ltd', {}),
    tenant(70, 'Northern Trains', { standing: 'suspended', groups: 1, rate_per_s: 2_000, hourly_micros: 40_000 }),
    tenant(71, 'Paper Mill', { standing: 'closing', members: 1, groups: 0, rate_per_s: 0, hourly_micros: 0 }),
  ]
}
