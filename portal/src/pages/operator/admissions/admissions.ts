import type { Admission } from '@/api'
import { rate } from '@/format/quantity'

interface Refused {
  code: string | null
  reason: string | null
  scarce_resource: string | null
}

const CODES: Record<string, string> = {
  quota_exceeded: 'A quota',
  spend_cap: 'A spend cap',
  guarantee_refused: 'A guarantee',
}
const REASONS: Record<string, string> = {
  insufficient_capacity: 'Too little room',
  beyond_shard_peak: 'More than one processor can',
  too_few_servers: 'Too few servers',
  too_many_groups: 'Too many groups',
  unknown_region: 'No such region',
  beyond_guarantee: 'Beyond the guarantee',
  latency_not_kept: 'Latency not kept',
}

/** Why, in a few words. */
export function reasonText({ code, reason, scarce_resource }: Refused): string {
  if (reason === null) return CODES[code ?? ''] ?? (code ?? 'Unknown').replaceAll('_', ' ')
  const words = REASONS[reason] ?? reason.replaceAll('_', ' ')
  return scarce_resource ? `${words}: ${scarce_resource.replaceAll('_', ' ')}` : words
}

/** The request, in a few words. */
export function askedText({ operation, asked }: Pick<Admission, 'operation' | 'asked'>): string {
  const body = typeof asked === 'object' && asked !== null ? (asked as Record<string, unknown>) : {}
  const wanted = typeof body.rate_per_s === 'number' ? `, ${rate(body.rate_per_s)}` : ''
  if (operation === 'create_group') return `A group ${typeof body.name === 'string' ? `“${body.name}”` : ''}${wanted}`
  if (operation === 'resize_group') return `A resize${wanted}`
  if (operation === 'put_guarantee') return 'A guarantee'
  return operation.replaceAll('_', ' ')
}
