import { getRouteApi } from '@tanstack/react-router'
import { usePageTitle } from '@/ui/title'
import { Keys } from './Keys'

const route = getRouteApi('/app/projects/$projectId/keys')

export function KeysPage() {
  usePageTitle('API keys')
  const { projectId } = route.useParams()
  return (
    <Keys
      owner={projectId}
      title="API keys"
      description="A key lets a program append to and read the groups of this project. We keep only a hash of it."
      make="New API key"
      empty={{ title: 'No API keys yet', text: 'Make one for each program, so that each can be revoked alone.' }}
    />
  )
}
