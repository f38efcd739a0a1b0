import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api, type OrganizationStanding } from '@/api'
import { ConfirmByName } from '@/ui/ConfirmByName'

interface Props {
  organization: OrganizationStanding
  open: boolean
  onOpenChange: (open: boolean) => void
}

export function CloseDialog({ organization, open, onOpenChange }: Props) {
  const queries = useQueryClient()
  const closure = useMutation({
    mutationFn: () => api.closeOrganization(organization.name),
    onSuccess: async () => {
      onOpenChange(false)
      await queries.invalidateQueries()
    },
  })
  return (
    <ConfirmByName
      name={organization.name}
      kind="organization"
      deed={closure}
      open={open}
      onOpenChange={onOpenChange}
      title={`Close ${organization.name}?`}
      description="All its groups refuse appends and reads from now on. After two weeks they are deleted with their logs, and two months later the data about its people."
      keep="Keep it"
      proceed="Close organization"
    />
  )
}
