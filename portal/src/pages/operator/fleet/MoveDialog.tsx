import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, keys, serversQuery, type HostedReplica } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { SelectField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'

interface Props {
  serverId: number
  replica: HostedReplica
  onClose: () => void
  onMoving: () => void
}

/** Moves one replica to another server, or to the one that placement chooses. */
export function MoveDialog({ serverId, replica, onClose, onMoving }: Props) {
  const queries = useQueryClient()
  const servers = useQuery(serversQuery)
  const [target, setTarget] = useState('')
  const others = servers.data?.filter((each) => each.server_id !== serverId && each.alive && each.takes_replicas) ?? []
  const moving = useMutation({
    mutationFn: () => api.moveReplica(replica.group_id, serverId, target ? Number(target) : null),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: keys.operator })
      onMoving()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    moving.mutate()
  }
  return (
    <Dialog
      open
      onOpenChange={(next) => !next && onClose()}
      title={`Move the replica of ${replica.name}?`}
      description="It leaves once its replacement has caught up, so that the group keeps all its replicas. Customers hardly notice."
    >
      <form noValidate onSubmit={submit} className="space-y-4">
        <SelectField label="To" value={target} onChange={(event) => setTarget(event.target.value)}>
          <option value="">The server with most room</option>
          {others.map((server) => (
            <option key={server.server_id} value={server.server_id}>
              {server.name}
            </option>
          ))}
        </SelectField>
        {moving.error && <ProblemNotice error={moving.error} />}
        <div className="flex justify-end gap-2">
          <Button variant="secondary" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" busy={moving.isPending}>
            Move replica
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
