import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api, groupQuery, keys, type Group } from '@/api'
import { useMay } from '@/session'
import { Button } from '@/ui/Button'
import { ConfirmByName } from '@/ui/ConfirmByName'
import { ProblemNotice } from '@/ui/Notice'
import { Section } from '@/ui/Surface'

export function DeletionSection({ group }: { group: Group }) {
  const [open, setOpen] = useState(false)
  const queries = useQueryClient()
  const navigate = useNavigate()
  const deletion = useMutation({
    mutationFn: () => api.deleteGroup(group.id),
    onSuccess: async () => {
      await navigate({ to: '/projects/$projectId/groups', params: { projectId: group.project_id } })
      queries.removeQueries({ queryKey: keys.group(group.id) })
      void queries.invalidateQueries({ queryKey: keys.groups(group.project_id) })
      void queries.invalidateQueries({ queryKey: keys.quotas })
    },
  })
  const going = group.status === 'deleting' || group.status === 'deleted'
  const isPartition = typeof group.partition_of === 'string'
  const isProtected = group.deletion_protection === true
  return (
    <Section
      title="Delete this group"
      description="Its entries are gone for good and its reservation ends at once. Invoices and SLA reports stay."
    >
      <Button
        variant="danger"
        disabledReason={
          going
            ? 'This group is being deleted already.'
            : isPartition
              ? 'It is a partition: delete the group that it is a partition of.'
              : isProtected
                ? 'It is protected: take the protection away first.'
                : undefined
        }
        onClick={() => setOpen(true)}
      >
        Delete group
      </Button>
      {!going && !isPartition && <Protection group={group} isProtected={isProtected} />}
      <ConfirmByName
        name={group.name}
        kind="group"
        deed={deletion}
        open={open}
        onOpenChange={setOpen}
        title={`Delete ${group.name}?`}
        description="Every entry of its log is lost and clients get an error at once. This cannot be undone."
        keep="Keep it"
        proceed="Delete for good"
      />
    </Section>
  )
}

/** A member who may only manage groups can protect one, and not take that back. */
function Protection({ group, isProtected }: { group: Group; isProtected: boolean }) {
  const queries = useQueryClient()
  const mayAdminister = useMay('administer')
  const protecting = useMutation({
    mutationFn: (deletion_protection: boolean) => api.settleGroup(group.id, { name: group.name, deletion_protection }),
    onSuccess: (changed) => {
      queries.setQueryData(groupQuery(group.id).queryKey, changed)
    },
  })
  return (
    <div className="mt-5 border-t border-line pt-4">
      <p className="text-sm text-ink-2">
        {isProtected
          ? 'It is protected: nobody deletes it, neither here nor with a key or Terraform.'
          : 'A protected group is deleted by nobody, until somebody takes the protection away.'}
      </p>
      {protecting.error && (
        <div className="mt-3">
          <ProblemNotice error={protecting.error} />
        </div>
      )}
      <div className="mt-3">
        <Button
          variant="secondary"
          busy={protecting.isPending}
          disabledReason={isProtected && !mayAdminister ? 'Owners and admins of the organization do that.' : undefined}
          onClick={() => protecting.mutate(!isProtected)}
        >
          {isProtected ? 'Take the protection away' : 'Protect from deletion'}
        </Button>
      </div>
    </div>
  )
}
