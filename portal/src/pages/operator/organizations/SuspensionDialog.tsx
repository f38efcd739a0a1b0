import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, fieldMessage, keys, type Tenant } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { TextField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'

export function SuspensionDialog({ tenant, onClose }: { tenant: Tenant | null; onClose: () => void }) {
  const queries = useQueryClient()
  const [reason, setReason] = useState('')
  const isSuspended = tenant?.standing === 'suspended'
  const close = () => {
    setReason('')
    change.reset()
    onClose()
  }
  const change = useMutation({
    mutationFn: (whom: Tenant) =>
      whom.standing === 'suspended' ? api.endSuspension(whom.id) : api.suspendOrganization(whom.id, reason.trim()),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: keys.operator })
      close()
    },
  })
  const lacking = isSuspended || reason.trim() ? undefined : 'Say why: its members see it.'
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (tenant && !lacking) change.mutate(tenant)
  }
  return (
    <Dialog
      open={tenant !== null}
      onOpenChange={(next) => !next && close()}
      title={isSuspended ? `End the suspension of ${tenant.name}?` : `Suspend ${tenant?.name ?? ''}?`}
      description={
        isSuspended
          ? 'Its groups accept appends and reads again within seconds.'
          : 'Its groups refuse appends and reads within ten seconds. Nothing is deleted, and reservations are billed on.'
      }
    >
      <form noValidate onSubmit={submit} className="space-y-4">
        {!isSuspended && (
          <TextField
            label="Reason"
            hint="Its members see it, and its owners get it by mail."
            value={reason}
            onChange={(event) => setReason(event.target.value)}
            error={fieldMessage(change.error, 'reason')}
            maxLength={500}
            autoComplete="off"
          />
        )}
        {change.error && <ProblemNotice error={change.error} />}
        <div className="flex flex-wrap justify-end gap-2">
          <Button variant="secondary" onClick={close}>
            Cancel
          </Button>
          <Button
            type="submit"
            variant={isSuspended ? 'primary' : 'danger'}
            busy={change.isPending}
            disabledReason={lacking}
          >
            {isSuspended ? 'End suspension' : 'Suspend'}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
