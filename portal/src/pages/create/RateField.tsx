import { useId, type CSSProperties } from 'react'
import type { UseFormReturn } from 'react-hook-form'
import { compact, count } from '@/format/quantity'
import { TextField } from '@/ui/Field'
import { Presets } from './Presets'
import type { GroupValues } from './slaForm'

/** The slider covers most groups' rates, in even steps of a decade. The field takes any rate. */
const DECADES = { low: 1, high: 6 }
const STEPS_PER_DECADE = 20
const RATES_PER_S = [500, 5_000, 20_000, 100_000]

export function RateField({ form, error }: { form: UseFormReturn<GroupValues>; error: string | undefined }) {
  const id = useId()
  const rate = form.watch('rate_per_s')
  const set = (next: number) => form.setValue('rate_per_s', next, { shouldDirty: true, shouldValidate: true })
  const position = toPosition(rate)
  return (
    <div>
      <TextField
        label="Rate to reserve"
        type="number"
        inputMode="numeric"
        unit="requests/s"
        hint="Guaranteed at every moment. Nothing above it is promised."
        {...form.register('rate_per_s', { valueAsNumber: true })}
        error={error}
      />
      <input
        id={id}
        type="range"
        aria-label="Rate to reserve, coarse"
        aria-valuetext={Number.isFinite(rate) ? `${count(rate)} requests a second` : 'not set'}
        min={DECADES.low * STEPS_PER_DECADE}
        max={DECADES.high * STEPS_PER_DECADE}
        step={1}
        value={position}
        onChange={(event) => set(toRate(Number(event.target.value)))}
        style={
          {
            '--fill': `${((position - DECADES.low * STEPS_PER_DECADE) / ((DECADES.high - DECADES.low) * STEPS_PER_DECADE)) * 100}%`,
          } as CSSProperties
        }
        className="slider mt-3 block w-full"
      />
      <Presets values={RATES_PER_S} label={(value) => `${compact(value)}/s`} onPick={set} />
    </div>
  )
}

function toPosition(rate: number): number {
  if (!Number.isFinite(rate) || rate < 1) return DECADES.low * STEPS_PER_DECADE
  return Math.round(Math.log10(rate) * STEPS_PER_DECADE)
}

/** Two significant digits, so that dragging gives round numbers. */
function toRate(position: number): number {
  const exact = 10 ** (position / STEPS_PER_DECADE)
  const step = 10 ** (Math.floor(Math.log10(exact) + 1e-9) - 1)
  return Math.max(1, Math.round(exact / step) * step)
}
