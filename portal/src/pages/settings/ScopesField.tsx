import { useId } from 'react'
import type { ApiKey } from '@/api'

export type Scope = ApiKey['scopes'][number]

export const USUAL_SCOPES: readonly Scope[] = ['append', 'read']

const SCOPES: readonly { scope: Scope; label: string; about: string }[] = [
  { scope: 'append', label: 'Append', about: 'Write to the logs of this project.' },
  { scope: 'read', label: 'Read', about: 'Read and follow these logs.' },
  {
    scope: 'manage',
    label: 'Manage',
    about: 'Create, resize and delete groups with their logs. For automation; no program that only appends needs it.',
  },
  { scope: 'billing', label: 'Billing', about: 'Read the invoices of the organization.' },
]

/** The rights of a key: no more than its program needs. */
export function ScopesField({ value, onChange }: { value: readonly Scope[]; onChange: (scopes: Scope[]) => void }) {
  const id = useId()
  const toggle = (scope: Scope, on: boolean) =>
    onChange(SCOPES.map((each) => each.scope).filter((each) => (each === scope ? on : value.includes(each))))
  return (
    <fieldset>
      <legend className="mb-1.5 text-sm font-medium">It may</legend>
      <div className="divide-y divide-line rounded-xl border border-line-strong bg-surface">
        {SCOPES.map(({ scope, label, about }) => (
          <label
            key={scope}
            htmlFor={`${id}-${scope}`}
            className="flex cursor-pointer gap-3 px-4 py-3 transition-colors hover:bg-hover"
          >
            <input
              id={`${id}-${scope}`}
              type="checkbox"
              checked={value.includes(scope)}
              onChange={(event) => toggle(scope, event.target.checked)}
              aria-describedby={`${id}-${scope}-about`}
              aria-label={label}
              className="mt-0.5 size-4 shrink-0 accent-(--accent)"
            />
            <span>
              <span className="block text-sm font-medium">{label}</span>
              <span id={`${id}-${scope}-about`} className="mt-0.5 block text-[13px] leading-snug text-ink-2">
                {about}
              </span>
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}
