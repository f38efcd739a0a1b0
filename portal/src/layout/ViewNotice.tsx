import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { endView } from '@/pages/view/view'
import { useMe } from '@/session'
import { Button } from '@/ui/Button'
import { Notice } from '@/ui/Notice'

/** Above every page that an operator looks at. */
export function ViewNotice() {
  const { viewed_by, organization } = useMe()
  const queries = useQueryClient()
  const navigate = useNavigate()
  if (viewed_by === null) return null
  const leave = async () => {
    endView()
    queries.clear()
    await navigate({ to: '/operator/organizations' })
  }
  return (
    <div className="mb-6">
      <Notice
        tone="warn"
        title={`You see ${organization.name} as ${viewed_by}`}
        action={
          <Button variant="secondary" size="small" onClick={() => void leave()}>
            End
          </Button>
        }
      >
        As its members see it, without entries. Nothing can be changed, and both audit logs tell of it.
      </Notice>
    </div>
  )
}
