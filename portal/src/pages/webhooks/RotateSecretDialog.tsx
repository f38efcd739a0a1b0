import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, keys, type Webhook } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { SelectField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'
import { SecretOnce } from '@/ui/SecretOnce'
import { GRACES } from '../settings/keyTimes'

const DAY = GRACES[2].value

interface Props {
  webhook: Webhook
  open: boolean
  onOpenChange: (open: boolean) => void
}

export function RotateSecretDialog({ webhook, open, onOpenChange }: Props) {
  const queries = useQueryClient()
  const [grace, setGrace] = useState<string>(DAY)
  const rotation = useMutation({
    mutationFn: () => api.rotateWebhookSecret(webhook.id, Number(grace)),
    onSuccess: () => void queries.invalidateQueries({ queryKey: keys.webhooks }),
  })
  const change = (next: boolean) => {
    setGrace(DAY)
    rotation.reset()
    onOpenChange(next)
  }
  return (
    <Dialog
      open={open}
      onOpenChange={change}
      title={rotation.data ? 'The webhook has a new secret' : 'Rotate the secret?'}
      description={rotation.data ? undefined : 'Meanwhile both sign each event, so that your receiver refuses none.'}
    >
      {rotation.data ? (
        <>
          <SecretOnce what="secret" secret={rotation.data.secret} />
          <div className="mt-5 flex justify-end">
            <Button onClick={() => change(false)}>I have kept it</Button>
          </div>
        </>
      ) : (
        <div className="space-y-4">
          <SelectField label="The former secret signs" value={grace} onChange={(event) => setGrace(event.target.value)}>
            {GRACES.map(({ value, label }) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </SelectField>
          {rotation.error && <ProblemNotice error={rotation.error} />}
          <div className="flex flex-wrap justify-end gap-2">
            <Button variant="secondary" onClick={() => change(false)}>
              Cancel
            </Button>
            <Button busy={rotation.isPending} onClick={() => rotation.mutate()}>
              Rotate secret
            </Button>
          </div>
        </div>
      )}
    </Dialog>
  )
}
