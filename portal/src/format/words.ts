import type { SlaPromise } from '@/api'
import { percent } from './quantity'

/** The product's words for the codes of the contract. An unknown code is shown with spaces for underscores. */
const WORDS: Record<string, string> = {
  persistent: 'Persistent',
  in_memory: 'In memory',
  provisioning: 'Provisioning',
  active: 'Active',
  degraded: 'Degraded',
  paused: 'Paused',
  read_only: 'Read-only',
  lost: 'Lost',
  deleting: 'Deleting',
  cpu: 'CPU',
  network: 'network bandwidth',
  storage_io: 'storage IO',
  memory: 'memory',
  disk: 'disk space',
  servers: 'servers',
  latency: 'commit latency',
  shard: 'one core of a server',
  head: 'Head',
  follower: 'Follower',
  tail: 'Tail',
  sole: 'Sole replica',
  learner: 'Learner',
}

export function word(code: string): string {
  return WORDS[code] ?? sentence(code)
}

function sentence(code: string): string {
  const text = code.replaceAll('_', ' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** The promise of an SLA: "99.95 % availability, p99 of commits within 2 ms". */
export function promised({ availability, latency_p99_us }: SlaPromise): string {
  return `${percent(availability)} availability, p99 of commits within ${latency_p99_us / 1_000} ms`
}

export function replicas(degree: number): string {
  return degree === 1 ? '1 replica' : `${degree} replicas`
}

export function majority(degree: number): number {
  return Math.floor(degree / 2) + 1
}
