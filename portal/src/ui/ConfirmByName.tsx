import { useState, type FormEvent, type ReactNode } from 'react'
import { Button } from './Button'
import { Dialog } from './Dialog'
import { TextField } from './Field'
import { ProblemNotice } from './Notice'

/** The part of a mutation that the dialog needs. */
interface Deed {
  mutate: () => void
  reset: () => void
  isPending: boolean
  error: Error | null
}

/** Asks for a thing's name before an action that cannot be undone. */
export function ConfirmByName({
  name,
  kind,
  deed,
  open,
  onOpenChange,
  title,
  description,
  keep,
  proceed,
  children,
}: {
  name: string
  kind: 'group' | 'project' | 'organization'
  deed: Deed
  open: boolean
  onOpenChange: (open: boolean) => void
  title: string
  description: string
  /** The buttons' labels. */
  keep: string
  proceed: string
  children?: ReactNode
}) {
  const [typed, setTyped] = useState('')
  const matches = typed === name
  const change = (next: boolean) => {
    setTyped('')
    deed.reset()
    onOpenChange(next)
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (matches) deed.mutate()
  }
  return (
    <Dialog open={open} onOpenChange={change} title={title} description={description}>
      <form onSubmit={submit} className="space-y-4">
        {children}
        <TextField
          label={`Type “${name}” to confirm`}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          autoComplete="off"
          spellCheck={false}
        />
        {deed.error && <ProblemNotice error={deed.error} />}
        <div className="flex flex-wrap justify-end gap-2">
          <Button variant="secondary" onClick={() => change(false)}>
            {keep}
          </Button>
          <Button
            type="submit"
            variant="danger"
            busy={deed.isPending}
            disabledReason={matches ? undefined : `Type the name of the ${kind} first.`}
          >
            {proceed}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
