import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, fieldMessage, keys, type OpenRequest } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { TextField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'

interface LimitProps {
  organizationId: string
  code: string
  limit: number
  onClose: () => void
}

export function LimitDialog({ organizationId, code, limit, onClose }: LimitProps) {
  const queries = useQueryClient()
  const [typed, setTyped] = useState(String(limit))
  const digits = typed.replace(/[\s,]/g, '')
  const value = /^\d{1,15}$/.test(digits) ? Number(digits) : null
  const setting = useMutation({
    mutationFn: (wanted: number) => api.setQuota(organizationId, code, wanted),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: keys.operator })
      onClose()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (value !== null) setting.mutate(value)
  }
  return (
    <Dialog
      open
      onOpenChange={(next) => !next && onClose()}
      title="Set a quota"
      description="It holds at once, also below what is in use: nothing is taken away then, and nothing added."
    >
      <form noValidate onSubmit={submit} className="space-y-4">
        <TextField
          label={code}
          inputMode="numeric"
          autoComplete="off"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          error={value === null ? 'A whole number from 0 on.' : undefined}
        />
        {setting.error && <ProblemNotice error={setting.error} />}
        <div className="flex justify-end gap-2">
          <Button variant="secondary" onClick={onClose}>
            Cancel
          </Button>
          <Button
            type="submit"
            busy={setting.isPending}
            disabledReason={value === null ? 'Mend the number first.' : undefined}
          >
            Set
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

export function DeclineDialog({ request, onClose }: { request: OpenRequest; onClose: () => void }) {
  const queries = useQueryClient()
  const [reason, setReason] = useState('')
  const declining = useMutation({
    mutationFn: () => api.declineQuota(request.organization_id, request.code, reason.trim()),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: keys.operator })
      onClose()
    },
  })
  const lacking = reason.trim() ? undefined : 'Say why: its owners get it by mail.'
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!lacking) declining.mutate()
  }
  return (
    <Dialog
      open
      onOpenChange={(next) => !next && onClose()}
      title={`Decline the request of ${request.organization_name}?`}
      description="The quota stays as it is. They may ask again."
    >
      <form noValidate onSubmit={submit} className="space-y-4">
        <TextField
          label="Reason"
          hint="Its owners get it by mail."
          autoComplete="off"
          maxLength={500}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
          error={fieldMessage(declining.error, 'reason')}
        />
        {declining.error && <ProblemNotice error={declining.error} />}
        <div className="flex justify-end gap-2">
          <Button variant="secondary" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" variant="danger" busy={declining.isPending} disabledReason={lacking}>
            Decline
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
