import { useId } from 'react'

interface Props<T extends string> {
  legend: string
  value: readonly T[]
  options: readonly { value: T; label: string; about: string }[]
  /** Gets the chosen values in the order of the options. */
  onChange: (value: T[]) => void
}

/** Checkboxes in a list, for choices that need a sentence each. */
export function Checks<T extends string>({ legend, value, options, onChange }: Props<T>) {
  const id = useId()
  const toggle = (one: T, on: boolean) =>
    onChange(options.map((each) => each.value).filter((each) => (each === one ? on : value.includes(each))))
  return (
    <fieldset>
      <legend className="mb-1.5 text-sm font-medium">{legend}</legend>
      <div className="divide-y divide-line rounded-xl border border-line-strong bg-surface">
        {options.map((option) => (
          <label
            key={option.value}
            htmlFor={`${id}-${option.value}`}
            className="flex cursor-pointer gap-3 px-4 py-3 transition-colors hover:bg-hover"
          >
            <input
              id={`${id}-${option.value}`}
              type="checkbox"
              checked={value.includes(option.value)}
              onChange={(event) => toggle(option.value, event.target.checked)}
              aria-describedby={`${id}-${option.value}-about`}
              aria-label={option.label}
              className="mt-0.5 size-4 shrink-0 accent-(--accent)"
            />
            <span>
              <span className="block text-sm font-medium">{option.label}</span>
              <span id={`${id}-${option.value}-about`} className="mt-0.5 block text-[13px] leading-snug text-ink-2">
                {option.about}
              </span>
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}
