import type { GuaranteedGroup } from '@/api'
import { INPUT } from '@/ui/Field'
import { POLICIES, wholeOf, type Entries, type PolicyName } from './guarantee'

interface Props {
  groups: GuaranteedGroup[]
  name: PolicyName
  entries: Entries
  onChange: (entries: Entries) => void
}

/** A weight, rank or worth for each group, and its class where the policy has classes. */
export function GroupEntries({ groups, name, entries, onChange }: Props) {
  const label = POLICIES.find((policy) => policy.name === name)?.weight ?? 'Weight'
  if (groups.length < 2) return null
  return (
    <fieldset>
      <legend className="sr-only">{label} of each group</legend>
      <ul className="max-h-56 divide-y divide-line overflow-y-auto rounded-xl border border-line">
        {groups.map(({ group_id, name: group }) => {
          const own = entries[group_id] ?? { weight: '1', name: '' }
          const set = (changed: Partial<typeof own>) => onChange({ ...entries, [group_id]: { ...own, ...changed } })
          const isNone = wholeOf(own.weight) === null && !(name === 'first_fit' && own.weight === '')
          return (
            <li key={group_id} className="flex items-center gap-3 px-3 py-2">
              <span className="min-w-0 flex-1 truncate text-sm">{group}</span>
              {name === 'hierarchical_drf' && (
                <input
                  aria-label={`Class of ${group}`}
                  placeholder="class"
                  maxLength={64}
                  value={own.name}
                  onChange={(event) => set({ name: event.target.value.trim() })}
                  className={`${INPUT} h-8 !w-28`}
                />
              )}
              <input
                aria-label={`${label} of ${group}`}
                aria-invalid={isNone}
                placeholder={name === 'first_fit' ? 'last' : '1'}
                inputMode="numeric"
                autoComplete="off"
                value={own.weight}
                onChange={(event) => set({ weight: event.target.value })}
                className={`${INPUT} nums h-8 !w-20 text-right`}
              />
            </li>
          )
        })}
      </ul>
    </fieldset>
  )
}
