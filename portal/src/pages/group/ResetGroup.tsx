import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, groupQuery, keys, type Group } from '@/api'
import { useMay } from '@/session'
import { Button } from '@/ui/Button'
import { ConfirmByName } from '@/ui/ConfirmByName'

/** Resets a lost group: an empty log under the same SLA. Only its owner can decide that. */
export function ResetGroup({ group }: { group: Group }) {
  const [open, setOpen] = useState(false)
  const mayManage = useMay('manage')
  const queries = useQueryClient()
  const reset = useMutation({
    mutationFn: () => api.resetGroup(group.id, group.epoch),
    onSuccess: (begun) => {
      setOpen(false)
      queries.setQueryData(groupQuery(group.id).queryKey, begun)
      void queries.invalidateQueries({ queryKey: keys.group(group.id) })
      void queries.invalidateQueries({ queryKey: keys.groups(group.project_id) })
    },
  })
  if (!mayManage) return null
  return (
    <>
      <Button variant="danger" onClick={() => setOpen(true)}>
        Reset group
      </Button>
      <ConfirmByName
        name={group.name}
        kind="group"
        deed={reset}
        open={open}
        onOpenChange={setOpen}
        title={`Reset ${group.name}?`}
        description="The group gets an empty log under the same SLA, and clients can append at once."
        keep="Not now"
        proceed="Discard the old log"
      >
        <ul className="list-disc space-y-1.5 pl-5 text-sm text-ink-2">
          <li>Every entry of the lost log is discarded for good, even if a server that held some comes back.</li>
          <li>Appends with an unknown outcome stay unknown. They are not in the new log.</li>
          <li>New offsets are far above all old ones, so a stored offset never names another entry.</li>
        </ul>
      </ConfirmByName>
    </>
  )
}
