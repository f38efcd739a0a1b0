import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, keys, type Member, type Role } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { ProblemNotice } from '@/ui/Notice'
import { RoleField } from './RoleField'

export function RoleDialog({ member, onClose }: { member: Member | null; onClose: () => void }) {
  return (
    <Dialog
      open={member !== null}
      onOpenChange={(next) => !next && onClose()}
      title={`Role of ${member?.email ?? 'the member'}`}
      description="They log in again, and what the former role allowed ends within seconds."
    >
      {member && <Choice key={member.user_id} member={member} onClose={onClose} />}
    </Dialog>
  )
}

function Choice({ member, onClose }: { member: Member; onClose: () => void }) {
  const queries = useQueryClient()
  const [role, setRole] = useState<Role>(member.role)
  const change = useMutation({
    mutationFn: () => api.changeRole(member.user_id, role),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: keys.members })
      onClose()
    },
  })
  return (
    <div className="space-y-4">
      <RoleField value={role} onChange={setRole} />
      {change.error && <ProblemNotice error={change.error} />}
      <div className="flex justify-end">
        <Button
          busy={change.isPending}
          disabledReason={role === member.role ? 'This is the present role.' : undefined}
          onClick={() => change.mutate()}
        >
          Change role
        </Button>
      </div>
    </div>
  )
}
