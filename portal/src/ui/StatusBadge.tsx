import { word } from '@/format/words'

type Tone = 'good' | 'warn' | 'danger' | 'busy' | 'plain'
const STYLES: Record<Tone, string> = {
  good: 'bg-accent-soft text-accent-text',
  warn: 'bg-warn-soft text-warn-text',
  danger: 'bg-danger-soft text-danger-text',
  busy: 'bg-info-soft text-info-text',
  plain: 'bg-sunken text-ink-2',
}
const STATUS_TONES: Record<string, Tone> = {
  active: 'good',
  provisioning: 'busy',
  degraded: 'warn',
  paused: 'danger',
  read_only: 'warn',
  lost: 'danger',
  suspended: 'danger',
  deleting: 'plain',
}
const MEANINGS: Record<string, string> = {
  active: 'Every replica is alive and appends are accepted.',
  provisioning: 'Replicas are being placed; this takes a second or two.',
  degraded: 'Fewer replicas than promised; appends continue while a replacement catches up.',
  paused: 'Too few replicas are alive, so appends wait until one is back.',
  read_only: 'A server’s disk is full or failing: reads work, appends do not.',
  lost: 'Nothing of its log is left. Appends and reads are refused until its owner resets it.',
  suspended: 'Appends and reads are refused. The log is kept.',
  reserved: 'The reservation passes, and nothing above it.',
  deleting: 'The group is being removed.',
}

export function Badge({ tone, children, title }: { tone: Tone; children: string; title?: string | undefined }) {
  return (
    <span
      title={title}
      className={`inline-flex h-6 items-center gap-1.5 rounded-full px-2.5 text-xs font-medium whitespace-nowrap ${STYLES[tone]}`}
    >
      <span
        aria-hidden
        className={`size-1.5 rounded-full bg-current ${tone === 'busy' ? 'animate-[breathe_1.2s_ease-in-out_infinite]' : ''}`}
      />
      {children}
    </span>
  )
}

export function StatusBadge({ status }: { status: string }) {
  return (
    <Badge tone={STATUS_TONES[status] ?? 'plain'} title={MEANINGS[status]}>
      {word(status)}
    </Badge>
  )
}

/** A group's status; of a healthy one that a spend cap suspends, that. */
export function GroupBadge({ group }: { group: { status: string; access: string } }) {
  const isWell = group.status === 'active' || group.status === 'degraded'
  return <StatusBadge status={isWell && group.access === 'suspended' ? 'suspended' : group.status} />
}

export function statusMeaning(status: string): string {
  return MEANINGS[status] ?? ''
}
