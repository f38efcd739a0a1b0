import type { UseFormReturn } from 'react-hook-form'
import { bytes } from '@/format/quantity'
import { majority, replicas } from '@/format/words'
import { CardChoice } from '@/ui/Choice'
import { SelectField, TextField } from '@/ui/Field'
import { Presets } from './Presets'
import { RETENTION_CHOICES_BYTES, type GroupValues } from './slaForm'

/** The fields of an SLA that can change later, for new groups and for resizes. */
interface Props {
  form: UseFormReturn<GroupValues>
}
interface Checked extends Props {
  error: string | undefined
}

const LATENCIES = [
  { value: 'standard', label: 'Standard', description: 'The SLA bounds commits at p99, by size and durability.' },
  {
    value: 'low',
    label: 'Low',
    description: 'A tighter bound. Servers are kept half empty for it, so the reservation costs twice as much.',
  },
] as const
const SIZES_BYTES = [64, 256, 1024, 4096]

export function RequestSizeField({ form, error }: Checked) {
  return (
    <div>
      <TextField
        label="Request size"
        type="number"
        inputMode="numeric"
        unit="bytes"
        hint="The size of a typical entry; it is what one request is priced by."
        {...form.register('request_size_bytes', { valueAsNumber: true })}
        error={error}
      />
      <Presets
        values={SIZES_BYTES}
        label={bytes}
        onPick={(size) => form.setValue('request_size_bytes', size, { shouldDirty: true, shouldValidate: true })}
      />
    </div>
  )
}

export function LatencyField({ form }: Props) {
  return (
    <CardChoice
      legend="Commit latency"
      value={form.watch('latency')}
      options={LATENCIES}
      onChange={(next) => form.setValue('latency', next, { shouldDirty: true })}
    />
  )
}

export function ReadsField({ form, error }: Checked) {
  return (
    <TextField
      label="Reads to reserve"
      type="number"
      inputMode="numeric"
      unit="reads/s"
      hint="From all replicas together. Readers and tails have what is spare beside it, without a promise."
      {...form.register('read_rate_per_s', { valueAsNumber: true })}
      error={error}
    />
  )
}

export function PauseField({ form }: Props) {
  const degree = form.watch('replication_degree')
  const numberOrNull = { setValueAs: (value: unknown) => (value === '' || value === null ? null : Number(value)) }
  return (
    <SelectField
      label="Pause appends below"
      hint="With fewer replicas alive than this, appends wait rather than risk an entry."
      {...form.register('min_replicas', numberOrNull)}
    >
      <option value="">A majority ({replicas(majority(degree))})</option>
      {Array.from({ length: degree }, (_, index) => index + 1).map((each) => (
        <option key={each} value={each}>
          {replicas(each)}
        </option>
      ))}
    </SelectField>
  )
}

/** The usual sizes, and those of the group and of an offer where they are others. */
export function RetentionField({ form }: Props) {
  const present = form.watch('retention_bytes')
  const first = form.formState.defaultValues?.retention_bytes ?? present
  const choices = [...new Set([...RETENTION_CHOICES_BYTES, first, present])].toSorted((left, right) => left - right)
  return (
    <SelectField
      label="Retention"
      hint="The oldest entries are discarded when the log grows beyond this."
      {...form.register('retention_bytes', { valueAsNumber: true })}
    >
      {choices.map((each) => (
        <option key={each} value={each}>
          {bytes(each)}
        </option>
      ))}
    </SelectField>
  )
}
