import { Checks } from '@/ui/Checks'
import { Segmented } from '@/ui/Choice'
import { TextField } from '@/ui/Field'
import { rightsFor, type KeyOwner, type Right } from './scopes'

export interface Scopes {
  rights: readonly Right[]
  on: 'all' | 'some'
  /** Names as typed, for `some`. */
  names: string
}

interface Props {
  owner: KeyOwner
  value: Scopes
  onChange: (scopes: Scopes) => void
  error?: string | undefined
}

/** The rights of a key: no more than its program needs. */
export function ScopesField({ owner, value, onChange, error }: Props) {
  return (
    <>
      <Checks
        legend="It may"
        value={value.rights}
        options={rightsFor(owner).map(({ right, label, about }) => ({ value: right, label, about }))}
        onChange={(rights) => onChange({ ...value, rights })}
      />
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
