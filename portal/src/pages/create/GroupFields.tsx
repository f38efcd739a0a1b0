import type { UseFormReturn } from 'react-hook-form'
import { CardChoice, Segmented } from '@/ui/Choice'
import { TextField } from '@/ui/Field'
import { Card } from '@/ui/Surface'
import { RateField } from './RateField'
import { LatencyField, PauseField, ReadsField, RequestSizeField, RetentionField } from './SlaFields'
import { DEGREE_MAX, minReplicasOf, type GroupValues } from './slaForm'

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
const DEGREES = Array.from({ length: DEGREE_MAX }, (_, index) => ({
  value: String(index + 1),
  label: String(index + 1),
}))

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
      <RequestSizeField form={form} error={wrong('request_size_bytes')} />
      <LatencyField form={form} />
      <Advanced form={form} wrong={wrong} />
    </Card>
  )
}

interface AdvancedProps {
  form: UseFormReturn<GroupValues>
  wrong: (field: keyof GroupValues) => string | undefined
}

function Advanced({ form, wrong }: AdvancedProps) {
  return (
    <details className="group border-t border-line pt-5">
      <summary className="rounded text-sm font-medium text-ink-2 hover:text-ink">More options</summary>
      <div className="mt-5 grid gap-5 sm:grid-cols-2">
        <ReadsField form={form} error={wrong('read_rate_per_s')} />
        <TextField
          label="Partitions"
          type="number"
          inputMode="numeric"
          hint="Keys are divided among so many logs, each on servers of its own, with an order of its own. More can be added later."
          {...form.register('partitions', { valueAsNumber: true })}
          error={wrong('partitions')}
        />
        <PauseField form={form} />
        <RetentionField form={form} />
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
