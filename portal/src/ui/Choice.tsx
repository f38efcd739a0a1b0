import { useId, type ReactNode } from 'react'

interface Option<T extends string> {
  value: T
  label: string
  description?: ReactNode
}
interface Props<T extends string> {
  legend: string
  hint?: ReactNode
  value: T
  options: readonly Option<T>[]
  onChange: (value: T) => void
}

/** Radio buttons drawn as cards, for choices that need a sentence each. */
export function CardChoice<T extends string>({ legend, value, options, onChange }: Props<T>) {
  const name = useId()
  return (
    <fieldset>
      <legend className="mb-1.5 text-sm font-medium">{legend}</legend>
      <div className="grid gap-3 sm:grid-cols-2">
        {options.map((option) => (
          <label
            key={option.value}
            className="relative cursor-pointer rounded-xl border border-line-strong bg-surface p-4 transition-colors hover:border-ink-3 has-checked:border-accent has-checked:bg-accent-soft has-focus-visible:outline-2 has-focus-visible:outline-offset-2 has-focus-visible:outline-(--focus)"
          >
            <input
              type="radio"
              name={name}
              value={option.value}
              aria-labelledby={`${name}-${option.value}`}
              aria-describedby={`${name}-${option.value}-more`}
              checked={option.value === value}
              onChange={() => onChange(option.value)}
              className="peer absolute inset-0 cursor-pointer appearance-none rounded-xl opacity-0"
            />
            <span
              aria-hidden
              className="absolute top-4 right-4 size-4 rounded-full border border-line-strong peer-checked:border-[5px] peer-checked:border-accent"
            />
            <span id={`${name}-${option.value}`} className="block pr-6 text-sm font-medium">
              {option.label}
            </span>
            <span id={`${name}-${option.value}-more`} className="mt-1 block text-[13px] leading-snug text-ink-2">
              {option.description}
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}

/** Radio buttons in a row, for short values. */
export function Segmented<T extends string>({ legend, hint, value, options, onChange }: Props<T>) {
  const name = useId()
  return (
    <fieldset>
      <legend className="mb-1.5 text-sm font-medium">{legend}</legend>
      <div className="inline-flex w-full max-w-md rounded-lg border border-line-strong bg-surface p-0.5">
        {options.map((option) => (
          <label
            key={option.value}
            className="relative flex-1 cursor-pointer rounded-md px-2 py-1.5 text-center text-sm text-ink-2 transition-colors hover:bg-hover has-checked:bg-accent has-checked:font-medium has-checked:text-accent-ink has-focus-visible:outline-2 has-focus-visible:outline-offset-2 has-focus-visible:outline-(--focus)"
          >
            <input
              type="radio"
              name={name}
              value={option.value}
              checked={option.value === value}
              onChange={() => onChange(option.value)}
              className="absolute inset-0 cursor-pointer appearance-none opacity-0"
            />
            <span className="nums">{option.label}</span>
          </label>
        ))}
      </div>
      {hint && <p className="mt-1.5 text-[13px] text-ink-3">{hint}</p>}
    </fieldset>
  )
}
