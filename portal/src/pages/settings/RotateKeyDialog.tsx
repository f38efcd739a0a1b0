import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, keys, type AnyKey } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { SelectField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'
import { SecretOnce } from '@/ui/SecretOnce'
import { GRACES } from './keyTimes'
import type { KeyOwner } from './scopes'

const DAY = GRACES[2].value

interface Props {
  owner: KeyOwner
  apiKey: AnyKey | null
  onClose: () => void
}

export function RotateKeyDialog({ owner, apiKey, onClose }: Props) {
  const queries = useQueryClient()
  const [grace, setGrace] = useState<string>(DAY)
  const rotation = useMutation({
    mutationFn: (key: AnyKey) => api.rotateKey(key.id, Number(grace)),
    onSuccess: () => void queries.invalidateQueries({ queryKey: keys.apiKeys(owner) }),
  })
  const close = () => {
    setGrace(DAY)
    rotation.reset()
    onClose()
  }
  return (
    <Dialog
      open={apiKey !== null}
      onOpenChange={(next) => !next && close()}
      title={rotation.data ? `${apiKey?.name ?? 'The key'} has a new secret` : `Rotate ${apiKey?.name ?? 'key'}?`}
      description={
        rotation.data
          ? undefined
          : 'It gets a new secret and keeps its name, rights and expiry. Give the new one to its program meanwhile.'
      }
    >
      {rotation.data ? (
        <>
          <SecretOnce secret={rotation.data.secret} />
          <div className="mt-5 flex justify-end">
            <Button onClick={close}>I have kept it</Button>
          </div>
        </>
      ) : (
        <div className="space-y-4">
          <SelectField
            label="The former secret works"
            hint={grace === '0' ? 'For a key that leaked: its programs are cut off within ten seconds.' : undefined}
            value={grace}
            onChange={(event) => setGrace(event.target.value)}
          >
            {GRACES.map(({ value, label }) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </SelectField>
          {rotation.error && <ProblemNotice error={rotation.error} />}
          <div className="flex flex-wrap justify-end gap-2">
            <Button variant="secondary" onClick={close}>
              Cancel
            </Button>
            <Button busy={rotation.isPending} onClick={() => apiKey && rotation.mutate(apiKey)}>
              Rotate key
            </Button>
          </div>
        </div>
      )}
    </Dialog>
  )
}
