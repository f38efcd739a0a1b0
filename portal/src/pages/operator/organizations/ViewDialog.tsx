import { useMutation } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, fieldMessage, type Tenant } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { TextField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'

/** Opens the portal in another tab, as members of the organization see it. */
export function ViewDialog({ tenant, onClose }: { tenant: Tenant; onClose: () => void }) {
  const [reason, setReason] = useState('')
  const beginning = useMutation({
    mutationFn: () => api.viewOrganization(tenant.id, reason.trim()),
    onSuccess: ({ token }) => {
      // The secret is behind `#`, which reaches no server.
      window.open(`/view#${token}`, '_blank', 'noopener')
      onClose()
    },
  })
  const lacking = reason.trim() ? undefined : 'Say why: it is in their audit log, too.'
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!lacking) beginning.mutate()
  }
  return (
    <Dialog
      open
      onOpenChange={(next) => !next && onClose()}
      title={`View ${tenant.name} as a member`}
      description="For half an hour, in another tab. You see groups, reports and invoices, and no entries; nothing can be changed."
    >
      <form noValidate onSubmit={submit} className="space-y-4">
        <TextField
          label="Reason"
          hint="For your audit log and theirs."
          autoComplete="off"
          maxLength={500}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
          error={fieldMessage(beginning.error, 'reason')}
        />
        {beginning.error && <ProblemNotice error={beginning.error} />}
        <div className="flex justify-end gap-2">
          <Button variant="secondary" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" busy={beginning.isPending} disabledReason={lacking}>
            View
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
