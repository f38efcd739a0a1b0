import type { UseFormReturn } from 'react-hook-form'
import type { Sla } from '@/api'
import type { GroupValues } from './slaForm'

/** Fills in the SLA that fits, which the fleet offers with a refusal. */
export function adoptSla(form: UseFormReturn<GroupValues>, fits: Sla): void {
  const options = { shouldDirty: true, shouldValidate: true }
  form.setValue('durability', fits.durability, options)
  form.setValue('replication_degree', fits.replication_degree, options)
  form.setValue('request_size_bytes', fits.request_size_bytes, options)
  form.setValue('rate_per_s', fits.rate_per_s, options)
  form.setValue('read_rate_per_s', fits.read_rate_per_s ?? 0, options)
  if (fits.retention_bytes !== undefined) form.setValue('retention_bytes', fits.retention_bytes, options)
  form.setValue('latency', fits.latency ?? 'standard', options)
  const smallest = form.getValues('min_replicas')
  if (smallest !== null && smallest > fits.replication_degree) form.setValue('min_replicas', null, options)
}
