import { useState, type FormEvent } from 'react'
import { Button } from '@/ui/Button'
import { Segmented } from '@/ui/Choice'
import { SelectField, TextField } from '@/ui/Field'
import type { View } from './payload'
import { instantOf, offsetOf, type Search } from './place'

const VIEWS = [
  { value: 'text', label: 'Text' },
  { value: 'json', label: 'JSON' },
  { value: 'hex', label: 'Hex' },
] as const

interface Props {
  search: Search
  partitions: number
  /** Changes the page's address. */
  onChange: (change: Search) => void
  /** The same, to look at another place. */
  onJump: (change: Search) => void
}

/** The place to look at, and the form of entries. */
export function LogControls({ search, partitions, onChange, onJump }: Props) {
  return (
    <div className="mb-5 grid items-end gap-x-5 gap-y-4 lg:grid-cols-[auto_1fr_1fr_18rem]">
      {partitions > 1 && (
        <SelectField
          label="Partition"
          className="min-w-24"
          value={search.partition ?? 0}
          onChange={(event) =>
            onChange({ partition: Number(event.target.value), offset: undefined, at: undefined, view: search.view })
          }
        >
          {Array.from({ length: partitions }, (_, number) => (
            <option key={number}>{number}</option>
          ))}
        </SelectField>
      )}
      <Jump
        label="From offset"
        action="Go to offset"
        wrong="A whole number from 0 on."
        inputMode="numeric"
        read={offsetOf}
        onJump={(offset) => onJump({ ...search, offset, at: undefined })}
      />
      <Jump
        label="From time"
        action="Go to time"
        wrong="A date and a time of day, of your clock."
        type="datetime-local"
        read={instantOf}
        onJump={(at) => onJump({ ...search, at, offset: undefined })}
      />
      <div className="mb-1.5">
        <Segmented<View>
          legend="Show as"
          value={search.view ?? 'text'}
          options={VIEWS}
          onChange={(view) => onChange({ ...search, view })}
        />
      </div>
    </div>
  )
}

interface JumpProps<T> {
  label: string
  action: string
  wrong: string
  type?: string
  inputMode?: 'numeric'
  read: (text: string) => T | null
  onJump: (value: T) => void
}

function Jump<T>({ label, action, wrong, type, inputMode, read, onJump }: JumpProps<T>) {
  const [typed, setTyped] = useState('')
  const [isWrong, setIsWrong] = useState(false)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const value = read(typed)
    setIsWrong(value === null)
    if (value !== null) onJump(value)
  }
  return (
    <form noValidate onSubmit={submit} className="flex items-end gap-2">
      <div className="min-w-0 flex-1">
        <TextField
          label={label}
          type={type}
          step={type ? 1 : undefined}
          inputMode={inputMode}
          autoComplete="off"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          error={isWrong ? wrong : undefined}
        />
      </div>
      <Button type="submit" variant="secondary" aria-label={action} className="mb-1.5">
        Go
      </Button>
    </form>
  )
}
