import { useMutation } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { fieldMessage } from '@/api'
import { Button } from './Button'
import { Dialog } from './Dialog'
import { TextField } from './Field'
import { ProblemNotice } from './Notice'

interface Props {
  name: string
  description: string
  rename: (name: string) => Promise<unknown>
  onClose: () => void
}

/** Asks for another name. It is mounted while it is open, so that it begins with the present one. */
export function Rename({ name, description, rename, onClose }: Props) {
  const [typed, setTyped] = useState(name)
  const renaming = useMutation({ mutationFn: rename, onSuccess: onClose })
  const wanted = typed.trim()
  const lacking = wanted === '' ? 'Type a name first.' : wanted === name ? 'That is its name.' : undefined
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!lacking) renaming.mutate(wanted)
  }
  const wrongName = fieldMessage(renaming.error, 'name')
  return (
    <Dialog open onOpenChange={(next) => !next && onClose()} title={`Rename ${name}`} description={description}>
      <form onSubmit={submit} className="space-y-4">
        <TextField
          label="Name"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          error={wrongName}
          maxLength={100}
          autoComplete="off"
          spellCheck={false}
          required
        />
        {renaming.error && !wrongName && <ProblemNotice error={renaming.error} />}
        <div className="flex flex-wrap justify-end gap-2">
          <Button variant="secondary" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" busy={renaming.isPending} disabledReason={lacking}>
            Rename
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
