import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api, keys, type AnyKey } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { ProblemNotice } from '@/ui/Notice'
import type { KeyOwner } from './scopes'

interface Props {
  owner: KeyOwner
  apiKey: AnyKey | null
  onClose: () => void
}

export function RevokeKeyDialog({ owner, apiKey, onClose }: Props) {
  const queries = useQueryClient()
  const revocation = useMutation({
    mutationFn: (key: AnyKey) => api.revokeKey(key.id),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: keys.apiKeys(owner) })
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
      description="Programs that use it are refused from now on, and cut off from servers within ten seconds. A revoked key does not come back."
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
