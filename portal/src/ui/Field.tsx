import { CircleAlert } from 'lucide-react'
import { useId, type ComponentProps, type ReactNode } from 'react'

export const INPUT =
  'h-10 w-full rounded-lg border border-line-strong bg-surface px-3 text-sm text-ink placeholder:text-ink-3 ' +
  'transition-colors hover:border-ink-3 aria-invalid:border-danger'

interface FieldProps {
  label: string
  hint?: ReactNode
  error?: string | undefined
  /** Gets the ids that tie the control to its label, hint and error. */
  children: (control: { id: string; 'aria-describedby': string; 'aria-invalid': boolean }) => ReactNode
}

/** A labelled control with its hint below. After an error it shows how to mend it. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId()
  const notes = `${id}-notes`
  return (
    <div>
      <label htmlFor={id} className="mb-1.5 block text-sm font-medium">
        {label}
      </label>
      {children({ id, 'aria-describedby': notes, 'aria-invalid': error !== undefined })}
      <div id={notes} className="mt-1.5 text-[13px] text-ink-3">
        {error === undefined ? hint : <FieldError>{error}</FieldError>}
      </div>
    </div>
  )
}

export function FieldError({ children }: { children: ReactNode }) {
  return (
    <span role="alert" className="flex items-start gap-1.5 text-danger-text">
      <CircleAlert aria-hidden className="mt-0.5 size-3.5 shrink-0" />
      {children}
    </span>
  )
}

interface TextFieldProps extends ComponentProps<'input'> {
  label: string
  hint?: ReactNode
  error?: string | undefined
  /** A unit shown inside the control's right edge. */
  unit?: string
}

export function TextField({ label, hint, error, unit, className, ...input }: TextFieldProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(control) => (
        <div className="relative">
          <input {...control} {...input} className={`${INPUT} ${unit ? 'pr-20' : ''} ${className ?? ''}`} />
          {unit && (
            <span
              aria-hidden
              className="pointer-events-none absolute inset-y-0 right-3 flex items-center text-[13px] text-ink-3"
            >
              {unit}
            </span>
          )}
        </div>
      )}
    </Field>
  )
}

interface SelectProps extends ComponentProps<'select'> {
  label: string
  hint?: ReactNode
  error?: string | undefined
}

/** The platform's own list, which works with every keyboard, screen reader and phone. */
export function SelectField({ label, hint, error, className, children, ...select }: SelectProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(control) => (
        <select {...control} {...select} className={`${INPUT} ${className ?? ''}`}>
          {children}
        </select>
      )}
    </Field>
  )
}
