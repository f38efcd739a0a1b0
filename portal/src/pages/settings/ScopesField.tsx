import { useId } from 'react'
import { Segmented } from '@/ui/Choice'
import { TextField } from '@/ui/Field'
import { RIGHTS, USUAL, type Right } from './scopes'

export interface Scopes {
  rights: readonly Right[]
  on: 'all' | 'some'
  /** Names as typed, for `some`. */
  names: string
}

export const USUAL_SCOPES: Scopes = { rights: USUAL, on: 'all', names: '' }

interface Props {
  value: Scopes
  onChange: (scopes: Scopes) => void
  error?: string | undefined
}

/** The rights of a key: no more than its program needs. */
export function ScopesField({ value, onChange, error }: Props) {
  const id = useId()
  const toggle = (right: Right, on: boolean) => {
    const rights = RIGHTS.map((each) => each.right).filter((each) =>
      each === right ? on : value.rights.includes(each),
    )
    onChange({ ...value, rights })
  }
  return (
    <>
      <fieldset>
        <legend className="mb-1.5 text-sm font-medium">It may</legend>
        <div className="divide-y divide-line rounded-xl border border-line-strong bg-surface">
          {RIGHTS.map(({ right, label, about }) => (
            <label
              key={right}
              htmlFor={`${id}-${right}`}
              className="flex cursor-pointer gap-3 px-4 py-3 transition-colors hover:bg-hover"
            >
              <input
                id={`${id}-${right}`}
                type="checkbox"
                checked={value.rights.includes(right)}
                onChange={(event) => toggle(right, event.target.checked)}
                aria-describedby={`${id}-${right}-about`}
                aria-label={label}
                className="mt-0.5 size-4 shrink-0 accent-(--accent)"
              />
              <span>
                <span className="block text-sm font-medium">{label}</span>
                <span id={`${id}-${right}-about`} className="mt-0.5 block text-[13px] leading-snug text-ink-2">
                  {about}
                </span>
              </span>
            </label>
          ))}
        </div>
      </fieldset>
      <Segmented
        legend="On"
        value={value.on}
        options={[
          { value: 'all', label: 'All groups' },
          { value: 'some', label: 'Some groups' },
        ]}
        onChange={(on) => onChange({ ...value, on })}
      />
      {value.on === 'some' && (
        <TextField
          label="Names of groups"
          placeholder="orders, pay-*"
          hint="Commas between them. pay-* is every group whose name begins with pay-, later ones too."
          value={value.names}
          onChange={(event) => onChange({ ...value, names: event.target.value })}
          error={error}
          autoComplete="off"
          spellCheck={false}
        />
      )}
    </>
  )
}
