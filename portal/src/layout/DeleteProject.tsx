import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { api, keys, type Project } from '@/api'
import { ConfirmByName } from '@/ui/ConfirmByName'

/** The service refuses to delete a project that has groups, and says so. */
export function DeleteProject({ project, open, onClose }: { project: Project; open: boolean; onClose: () => void }) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const deletion = useMutation({
    mutationFn: () => api.deleteProject(project.id),
    onSuccess: async () => {
      onClose()
      await queries.invalidateQueries({ queryKey: keys.me })
      await navigate({ to: '/' })
    },
  })
  return (
    <ConfirmByName
      name={project.name}
      kind="project"
      deed={deletion}
      open={open}
      onOpenChange={(next) => !next && onClose()}
      title={`Delete the project ${project.name}?`}
      description="Its API keys end at once. Invoices and SLA reports stay. Delete its groups first."
      keep="Keep it"
      proceed="Delete project"
    />
  )
}
