import type { EventType } from '@/api'
import { Checks } from '@/ui/Checks'
import { Segmented } from '@/ui/Choice'
import { TextField } from '@/ui/Field'
import { EVENT_TYPES } from './eventTypes'

export interface WebhookForm {
  url: string
  description: string
  all: boolean
  types: EventType[]
}

export const EMPTY: WebhookForm = { url: '', description: '', all: true, types: [] }

/** The body of the contract. */
export function bodyOf({ url, description, all, types }: WebhookForm) {
  return { url: url.trim(), description: description.trim(), event_types: all ? [] : types }
}

/** The reason why it cannot be sent yet. */
export function lackOf({ url, all, types }: WebhookForm): string | undefined {
  if (!url.trim()) return 'Enter the address first.'
  return !all && types.length === 0 ? 'Choose at least one type of events.' : undefined
}

interface Props {
  value: WebhookForm
  onChange: (form: WebhookForm) => void
  wrongUrl?: string | undefined
}

export function WebhookFields({ value, onChange, wrongUrl }: Props) {
  return (
    <>
      <TextField
        label="URL"
        type="url"
        inputMode="url"
        placeholder="https://example.com/quorate"
        hint="Events are sent there by POST. It has to be reachable from the public internet."
        value={value.url}
        onChange={(event) => onChange({ ...value, url: event.target.value })}
        error={wrongUrl}
        autoComplete="off"
        spellCheck={false}
        required
      />
      <TextField
        label="Description"
        hint="Optional. For this list."
        value={value.description}
        onChange={(event) => onChange({ ...value, description: event.target.value })}
        maxLength={100}
        autoComplete="off"
      />
      <Segmented
        legend="It gets"
        value={value.all ? 'all' : 'some'}
        options={[
          { value: 'all', label: 'All events' },
          { value: 'some', label: 'Some types' },
        ]}
        onChange={(which) => onChange({ ...value, all: which === 'all' })}
      />
      {!value.all && (
        <Checks
          legend="When"
          value={value.types}
          options={EVENT_TYPES}
          onChange={(types) => onChange({ ...value, types })}
        />
      )}
    </>
  )
}
