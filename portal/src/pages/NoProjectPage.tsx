import { useNavigate } from '@tanstack/react-router'
import { FolderPlus } from 'lucide-react'
import { useState } from 'react'
import { NewProject } from '@/layout/NewProject'
import { useMay } from '@/session'
import { Button } from '@/ui/Button'
import { EmptyState } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'

/** The start page of an organization that has no project. */
export function NoProjectPage() {
  usePageTitle('Projects')
  const mayCreate = useMay('administer')
  const navigate = useNavigate()
  const [creating, setCreating] = useState(false)
  return (
    <EmptyState
      title="No project yet"
      picture={<FolderPlus aria-hidden className="size-8" />}
      action={mayCreate ? <Button onClick={() => setCreating(true)}>New project</Button> : undefined}
    >
      {mayCreate
        ? 'A project keeps its groups and API keys apart from others.'
        : 'Owners and admins of the organization make projects. Ask one of them.'}
      <NewProject
        open={creating}
        onClose={() => setCreating(false)}
        onCreated={(projectId) => void navigate({ to: '/projects/$projectId/groups', params: { projectId } })}
      />
    </EmptyState>
  )
}
