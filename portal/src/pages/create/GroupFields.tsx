import type { UseFormReturn } from 'react-hook-form'
import { bytes } from '@/format/quantity'
import { majority, replicas } from '@/format/words'
import { CardChoice, Segmented } from '@/ui/Choice'
import { SelectField, TextField } from '@/ui/Field'
import { Card } from '@/ui/Surface'
import { Presets } from './Presets'
import { RateField } from './RateField'
import { DEGREE_MAX, minReplicasOf, RETENTION_CHOICES_BYTES, type GroupValues } from './slaForm'

interface Props {
  form: UseFormReturn<GroupValues>
  /** The service's message about a field, if any. */
  serverMessage: (field: string) => string | undefined
}

const DURABILITIES = [
  {
    value: 'persistent',
    label: 'Persistent',
    description: 'Acknowledged when it is on stable storage of every replica. Survives a loss of power everywhere.',
  },
  {
    value: 'in_memory',
    label: 'In memory',
    description:
      'Acknowledged when every replica has it in memory. Faster and cheaper; lost if all of them fail at once.',
  },
] as const
const LATENCIES = [
  { value: 'standard', label: 'Standard', description: 'The SLA bounds commits at p99, by size and durability.' },
  {
    value: 'low',
    label: 'Low',
    description: 'A tighter bound. Servers are kept half empty for it, so the reservation costs twice as much.',
  },
] as const
const DEGREES = Array.from({ length: DEGREE_MAX }, (_, index) => ({
  value: String(index + 1),
  label: String(index + 1),
}))
const SIZES_BYTES = [64, 256, 1024, 4096]

export function GroupFields({ form, serverMessage }: Props) {
  const values = form.watch()
  const { errors } = form.formState
  const wrong = (field: keyof GroupValues) => errors[field]?.message ?? serverMessage(field)
  return (
    <Card className="space-y-7 p-5 sm:p-7">
      <TextField
        label="Name"
        placeholder="orders"
        autoComplete="off"
        spellCheck={false}
        maxLength={100}
        hint="How you and your colleagues will call it."
        {...form.register('name')}
        error={wrong('name')}
      />
      <CardChoice
        legend="Durability"
        value={values.durability}
        options={DURABILITIES}
        onChange={(next) => form.setValue('durability', next, { shouldDirty: true })}
      />
      <Segmented
        legend="Replication degree"
        hint={tolerance(values)}
        value={String(values.replication_degree)}
        options={DEGREES}
        onChange={(next) => changeDegree(form, Number(next))}
      />
      <RateField form={form} error={wrong('rate_per_s')} />
      <div>
        <TextField
          label="Request size"
          type="number"
          inputMode="numeric"
          unit="bytes"
          hint="The size of a typical entry; it is what one request is priced by."
          {...form.register('request_size_bytes', { valueAsNumber: true })}
          error={wrong('request_size_bytes')}
        />
        <Presets
          values={SIZES_BYTES}
          label={bytes}
          onPick={(size) => form.setValue('request_size_bytes', size, { shouldDirty: true, shouldValidate: true })}
        />
      </div>
      <CardChoice
        legend="Commit latency"
        value={values.latency}
        options={LATENCIES}
        onChange={(next) => form.setValue('latency', next, { shouldDirty: true })}
      />
      <Advanced form={form} wrong={wrong} />
    </Card>
  )
}

interface AdvancedProps {
  form: UseFormReturn<GroupValues>
  wrong: (field: keyof GroupValues) => string | undefined
}

function Advanced({ form, wrong }: AdvancedProps) {
  const values = form.watch()
  const numberOrNull = { setValueAs: (value: unknown) => (value === '' || value === null ? null : Number(value)) }
  return (
    <details className="group border-t border-line pt-5">
      <summary className="rounded text-sm font-medium text-ink-2 hover:text-ink">More options</summary>
      <div className="mt-5 grid gap-5 sm:grid-cols-2">
        <TextField
          label="Reads to reserve"
          type="number"
          inputMode="numeric"
          unit="reads/s"
          hint="From all replicas together. Readers and tails have what is spare beside it, without a promise."
          {...form.register('read_rate_per_s', { valueAsNumber: true })}
          error={wrong('read_rate_per_s')}
        />
        <TextField
          label="Partitions"
          type="number"
          inputMode="numeric"
          hint="Keys are divided among so many logs, each on servers of its own, with an order of its own. More can be added later."
          {...form.register('partitions', { valueAsNumber: true })}
          error={wrong('partitions')}
        />
        <SelectField
          label="Pause appends below"
          hint="With fewer replicas alive than this, appends wait rather than risk an entry."
          {...form.register('min_replicas', numberOrNull)}
        >
          <option value="">A majority ({replicas(majority(values.replication_degree))})</option>
          {Array.from({ length: values.replication_degree }, (_, index) => index + 1).map((each) => (
            <option key={each} value={each}>
              {replicas(each)}
            </option>
          ))}
        </SelectField>
        <SelectField
          label="Retention"
          hint="The oldest entries are discarded when the log grows beyond this."
          {...form.register('retention_bytes', { valueAsNumber: true })}
        >
          {RETENTION_CHOICES_BYTES.map((each) => (
            <option key={each} value={each}>
              {bytes(each)}
            </option>
          ))}
        </SelectField>
      </div>
    </details>
  )
}

function changeDegree(form: UseFormReturn<GroupValues>, degree: number): void {
  form.setValue('replication_degree', degree, { shouldDirty: true })
  const chosen = form.getValues('min_replicas')
  if (chosen !== null && chosen > degree) form.setValue('min_replicas', null)
}

function tolerance(values: GroupValues): string {
  const spare = values.replication_degree - minReplicasOf(values)
  if (values.replication_degree === 1) return 'One copy: when its server fails, the log waits for it.'
  if (spare === 0) return 'Appends pause as soon as one server fails, until it is replaced.'
  return `Appends go on while ${spare === 1 ? 'one server is' : `${spare} servers are`} down.`
}
