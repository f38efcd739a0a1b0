import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, fieldMessage, keys } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { TextField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'

interface Props {
  open: boolean
  onClose: () => void
  onCreated: (projectId: string) => void
}

export function NewProject({ open, onClose, onCreated }: Props) {
  const queries = useQueryClient()
  const [name, setName] = useState('')
  const creation = useMutation({
    mutationFn: api.createProject,
    onSuccess: async (project) => {
      await queries.invalidateQueries({ queryKey: keys.me })
      onClose()
      setName('')
      onCreated(project.id)
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (name.trim()) creation.mutate(name.trim())
  }
  const wrongName = creation.error ? fieldMessage(creation.error, 'name') : undefined
  return (
    <Dialog
      open={open}
      onOpenChange={(next) => {
        creation.reset()
        if (!next) onClose()
      }}
      title="New project"
      description="A project keeps its groups and API keys apart from others: production from staging, say."
    >
      <form onSubmit={submit} className="space-y-4">
        <TextField
          label="Name"
          value={name}
          onChange={(event) => setName(event.target.value)}
          error={wrongName}
          maxLength={100}
          autoComplete="off"
          required
        />
        {creation.error && !wrongName && <ProblemNotice error={creation.error} />}
        <div className="flex justify-end">
          <Button type="submit" busy={creation.isPending}>
            Create project
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
