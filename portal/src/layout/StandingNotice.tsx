import { Link } from '@tanstack/react-router'
import { useMe } from '@/session'
import { Notice } from '@/ui/Notice'

const TEXTS = {
  suspended: ['This organization is suspended', 'Groups refuse appends and reads. Nothing is deleted.'],
  closing: ['This organization is closing', 'Groups refuse appends and reads, and are deleted soon.'],
  closed: ['This organization is closed', 'Its groups are deleted. Invoices can be read still.'],
} as const

/** Above every page of an organization that is not active. */
export function StandingNotice() {
  const { organization } = useMe()
  if (organization.standing === 'active') return null
  const [title, text] = TEXTS[organization.standing]
  return (
    <div className="mb-6">
      <Notice tone={organization.standing === 'suspended' ? 'danger' : 'warn'} title={title}>
        {text}{' '}
        <Link to="/organization" className="font-medium underline underline-offset-2">
          See why, and until when
        </Link>
      </Notice>
    </div>
  )
}
