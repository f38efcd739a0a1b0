import type { EventType } from '@/api'

interface Described {
  value: EventType
  label: string
  about: string
}

/** Types that a webhook can choose, with words for people. */
export const EVENT_TYPES: readonly Described[] = [
  {
    value: 'group.status_changed',
    label: 'A group’s status changes',
    about: 'It lost a replica, waits, is whole again, or its log is lost.',
  },
  {
    value: 'budget.threshold_reached',
    label: 'A budget’s threshold is reached',
    about: 'By this month’s cost, or by its forecast.',
  },
  { value: 'budget.cap_reached', label: 'A spend cap acts', about: 'Groups are throttled or suspended.' },
  { value: 'invoice.issued', label: 'An invoice is issued', about: 'At the close of a month.' },
  { value: 'credit_note.issued', label: 'A credit is given', about: 'For a missed SLA, or a correction.' },
  { value: 'payment.received', label: 'A payment is received', about: 'It was recorded for an invoice.' },
  { value: 'payment.reminded', label: 'An invoice is overdue', about: 'A reminder of it was sent.' },
  {
    value: 'audit.recorded',
    label: 'Somebody changes something',
    about: 'Each entry of the audit log, for a system of your own.',
  },
]

export function labelOf(type: EventType): string {
  return EVENT_TYPES.find((each) => each.value === type)?.label ?? (type === 'webhook.test' ? 'Test' : type)
}

/** "All events", "A spend cap acts", "3 types of events". */
export function inWords(types: readonly EventType[]): string {
  if (types.length === 0) return 'All events'
  const [only] = types
  return types.length === 1 && only ? labelOf(only) : `${String(types.length)} types of events`
}
