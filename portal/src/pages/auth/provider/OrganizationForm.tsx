import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState, type FormEvent } from 'react'
import { api, endErrand, fieldMessage } from '@/api'
import { Button } from '@/ui/Button'
import { TextField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'

/** The last of what an account needs, where the provider has told the rest. */
export function OrganizationForm() {
  const [organization, setOrganization] = useState('')
  const queries = useQueryClient()
  const navigate = useNavigate()
  const signUp = useMutation({
    mutationFn: () => api.signUpWithProvider(organization.trim()),
    onSuccess: async ({ project }) => {
      endErrand()
      queries.clear()
      const params = { projectId: project.id }
      await navigate({ to: '/projects/$projectId/groups/new', params, search: { welcome: true } })
    },
  })
  const wrong = fieldMessage(signUp.error, 'organization')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (organization.trim()) signUp.mutate()
  }
  return (
    <form noValidate onSubmit={submit} className="space-y-4">
      <TextField
        label="Organization"
        autoComplete="organization"
        hint="Your company or team; it is on the invoices."
        maxLength={100}
        value={organization}
        onChange={(event) => setOrganization(event.target.value)}
        error={wrong}
      />
      {signUp.error && !wrong && <ProblemNotice error={signUp.error} />}
      <Button
        type="submit"
        busy={signUp.isPending}
        className="w-full"
        disabledReason={organization.trim() ? undefined : 'Enter the name of your company or team.'}
      >
        Create account
      </Button>
    </form>
  )
}
