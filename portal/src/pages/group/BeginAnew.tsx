import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, keys, type Group } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { TextField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'

/** A lost group's way on, which only its owner can take: an empty log under the same SLA. */
export function BeginAnew({ group }: { group: Group }) {
  const [open, setOpen] = useState(false)
  return (
    <>
      <Button variant="danger" onClick={() => setOpen(true)}>
        Begin anew
      </Button>
      <BeginAnewDialog group={group} open={open} onOpenChange={setOpen} />
    </>
  )
}

function BeginAnewDialog({
  group,
  open,
  onOpenChange,
}: {
  group: Group
  open: boolean
  onOpenChange: (open: boolean) => void
}) {
  const [typed, setTyped] = useState('')
  const queries = useQueryClient()
  const reset = useMutation({
    mutationFn: () => api.resetGroup(group.id, group.epoch),
    onSuccess: (begun) => {
      onOpenChange(false)
      queries.setQueryData(keys.group(group.id), begun)
      void queries.invalidateQueries({ queryKey: keys.group(group.id) })
      void queries.invalidateQueries({ queryKey: keys.groups(group.project_id) })
    },
  })
  const matches = typed === group.name
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (matches) reset.mutate()
  }
  return (
    <Dialog
      open={open}
      onOpenChange={(next) => {
        setTyped('')
        reset.reset()
        onOpenChange(next)
      }}
      title={`Begin ${group.name} anew?`}
      description="The group gets an empty log under the same SLA, and clients can append at once."
    >
      <form onSubmit={submit} className="space-y-4">
        <ul className="list-disc space-y-1.5 pl-5 text-sm text-ink-2">
          <li>Every entry of the lost log is given up for good, also if a server that held some comes back.</li>
          <li>Appends whose outcome clients do not know stay unknown: they are not in the new log.</li>
          <li>New offsets are far above all old ones, so an offset that was noted never names another entry.</li>
        </ul>
        <TextField
          label={`Type “${group.name}” to confirm`}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          autoComplete="off"
          spellCheck={false}
        />
        {reset.error && <ProblemNotice error={reset.error} />}
        <div className="flex flex-wrap justify-end gap-2">
          <Button variant="secondary" onClick={() => onOpenChange(false)}>
            Not now
          </Button>
          <Button
            type="submit"
            variant="danger"
            busy={reset.isPending}
            disabledReason={matches ? undefined : 'Type the name of the group first.'}
          >
            Give up the old log
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
