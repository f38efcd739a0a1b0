import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, fieldMessage, keys, type Quota } from '@/api'
import { count } from '@/format/quantity'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { TextField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'

/** Asks the operators for a greater quota. */
export function QuotaRequestDialog({ quota, onClose }: { quota: Quota; onClose: () => void }) {
  const queries = useQueryClient()
  const [typed, setTyped] = useState(String(quota.requested ?? quota.limit * 2))
  const [reason, setReason] = useState('')
  const digits = typed.replace(/[\s,]/g, '')
  const wanted = /^\d{1,15}$/.test(digits) && Number(digits) > quota.limit ? Number(digits) : null
  const asking = useMutation({
    mutationFn: (limit: number) => api.requestQuota(quota.code, { wanted: limit, reason: reason.trim() }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: keys.quotas })
      onClose()
    },
  })
  const lacking = wanted === null ? 'Mend the number first.' : reason.trim() ? undefined : 'Say what you plan with it.'
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (wanted !== null && !lacking) asking.mutate(wanted)
  }
  return (
    <Dialog
      open
      onOpenChange={(next) => !next && onClose()}
      title="Ask for more"
      description="The service’s operators answer by mail to the owners of your organization."
    >
      <form noValidate onSubmit={submit} className="space-y-4">
        <TextField
          label={quota.description}
          inputMode="numeric"
          autoComplete="off"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          hint={`It is ${count(quota.limit)} now.`}
          error={wanted === null ? `A whole number above ${count(quota.limit)}.` : undefined}
        />
        <TextField
          label="Your plan"
          hint="A sentence on the use that you expect."
          autoComplete="off"
          maxLength={1000}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
          error={fieldMessage(asking.error, 'reason')}
        />
        {asking.error && <ProblemNotice error={asking.error} />}
        <div className="flex justify-end gap-2">
          <Button variant="secondary" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" busy={asking.isPending} disabledReason={lacking}>
            Ask
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
