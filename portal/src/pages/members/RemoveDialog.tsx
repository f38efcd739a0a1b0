import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api, keys, type Member } from '@/api'
import { useMe, useSignOut } from '@/session'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { ProblemNotice } from '@/ui/Notice'

export function RemoveDialog({ member, onClose }: { member: Member | null; onClose: () => void }) {
  const { organization } = useMe()
  const queries = useQueryClient()
  const signOut = useSignOut()
  const removal = useMutation({
    mutationFn: (whom: Member) => api.removeMember(whom.user_id),
    onSuccess: async (_answer, whom) => {
      if (whom.is_you) return signOut()
      await queries.invalidateQueries({ queryKey: keys.members })
      onClose()
    },
  })
  const isYou = member?.is_you ?? false
  return (
    <Dialog
      open={member !== null}
      onOpenChange={(next) => {
        if (next) return
        removal.reset()
        onClose()
      }}
      title={isYou ? `Leave ${organization.name}?` : `Remove ${member?.email ?? 'the member'}?`}
      description="Sessions in this organization end at once. API keys stay, as they are the organization's."
    >
      {removal.error && <ProblemNotice error={removal.error} />}
      <div className="mt-4 flex flex-wrap justify-end gap-2">
        <Button variant="secondary" onClick={onClose}>
          Cancel
        </Button>
        <Button variant="danger" busy={removal.isPending} onClick={() => member && removal.mutate(member)}>
          {isYou ? 'Leave' : 'Remove'}
        </Button>
      </div>
    </Dialog>
  )
}
