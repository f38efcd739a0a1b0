import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, fieldMessage, keys, type Role } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { TextField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'
import { RoleField } from './RoleField'

export function InviteDialog({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const queries = useQueryClient()
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<Role>('developer')
  const change = (next: boolean) => {
    onOpenChange(next)
    if (next) return
    setEmail('')
    setRole('developer')
    invitation.reset()
  }
  const invitation = useMutation({
    mutationFn: () => api.inviteMember({ email: email.trim(), role }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: keys.invitations })
      change(false)
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (email.trim()) invitation.mutate()
  }
  const wrongEmail = fieldMessage(invitation.error, 'email')
  return (
    <Dialog
      open={open}
      onOpenChange={change}
      title="Invite a person"
      description="They get a mail with a link, which works for a week."
    >
      <form noValidate onSubmit={submit} className="space-y-4">
        <TextField
          label="E-mail"
          type="email"
          autoComplete="off"
          value={email}
          onChange={(event) => setEmail(event.target.value)}
          error={wrongEmail && 'Enter an e-mail address.'}
        />
        <RoleField value={role} onChange={setRole} />
        {invitation.error && !wrongEmail && <ProblemNotice error={invitation.error} />}
        <div className="flex justify-end">
          <Button type="submit" busy={invitation.isPending}>
            Send invitation
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
