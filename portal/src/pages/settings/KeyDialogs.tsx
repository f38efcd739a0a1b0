import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, fieldMessage, keys, type ApiKey } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { TextField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'
import { SecretOnce } from '@/ui/SecretOnce'
import { ScopesField, USUAL_SCOPES, type Scope } from './ScopesField'

export function NewKeyDialog({
  projectId,
  open,
  onOpenChange,
}: {
  projectId: string
  open: boolean
  onOpenChange: (open: boolean) => void
}) {
  const queries = useQueryClient()
  const [name, setName] = useState('')
  const [scopes, setScopes] = useState<readonly Scope[]>(USUAL_SCOPES)
  const creation = useMutation({
    mutationFn: (wanted: string) => api.createKey(projectId, wanted, [...scopes]),
    onSuccess: () => void queries.invalidateQueries({ queryKey: keys.apiKeys(projectId) }),
  })
  const change = (next: boolean) => {
    onOpenChange(next)
    if (next) return
    setName('')
    setScopes(USUAL_SCOPES)
    creation.reset()
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (name.trim() && scopes.length > 0) creation.mutate(name.trim())
  }
  const wrongName = fieldMessage(creation.error, 'name')
  return (
    <Dialog open={open} onOpenChange={change} title={creation.data ? `${creation.data.name} is ready` : 'New API key'}>
      {creation.data ? (
        <>
          <SecretOnce secret={creation.data.secret} />
          <div className="mt-5 flex justify-end">
            <Button onClick={() => change(false)}>I have kept it</Button>
          </div>
        </>
      ) : (
        <form onSubmit={submit} className="space-y-4">
          <TextField
            label="Name"
            placeholder="orders service"
            hint="Which program will use it. The name is shown in this list only."
            value={name}
            onChange={(event) => setName(event.target.value)}
            error={wrongName}
            maxLength={100}
            autoComplete="off"
            required
          />
          <ScopesField value={scopes} onChange={setScopes} />
          {creation.error && !wrongName && <ProblemNotice error={creation.error} />}
          <div className="flex justify-end">
            <Button
              type="submit"
              busy={creation.isPending}
              disabledReason={scopes.length === 0 ? 'Choose at least one thing that it may do.' : undefined}
            >
              Make key
            </Button>
          </div>
        </form>
      )}
    </Dialog>
  )
}

export function RevokeKeyDialog({ apiKey, onClose }: { apiKey: ApiKey | null; onClose: () => void }) {
  const queries = useQueryClient()
  const revocation = useMutation({
    mutationFn: (key: ApiKey) => api.revokeKey(key.id),
    onSuccess: async (_answer, key) => {
      await queries.invalidateQueries({ queryKey: keys.apiKeys(key.project_id) })
      onClose()
    },
  })
  return (
    <Dialog
      open={apiKey !== null}
      onOpenChange={(next) => {
        if (next) return
        revocation.reset()
        onClose()
      }}
      title={`Revoke ${apiKey?.name ?? 'key'}?`}
      description="Programs that use it are refused from now on; connections that are open end when their token runs out, within the hour. A revoked key does not come back."
    >
      {revocation.error && <ProblemNotice error={revocation.error} />}
      <div className="mt-4 flex flex-wrap justify-end gap-2">
        <Button variant="secondary" onClick={onClose}>
          Keep it
        </Button>
        <Button variant="danger" busy={revocation.isPending} onClick={() => apiKey && revocation.mutate(apiKey)}>
          Revoke key
        </Button>
      </div>
    </Dialog>
  )
}
