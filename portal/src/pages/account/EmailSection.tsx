import { useMe } from '@/session'
import { Badge } from '@/ui/StatusBadge'
import { Section } from '@/ui/Surface'
import { SendLink } from './SendLink'

export function EmailSection() {
  const { user } = useMe()
  if (!user) return null
  return (
    <Section
      title="E-mail address"
      aside={user.email_verified ? <Badge tone="good">Verified</Badge> : <Badge tone="warn">Not verified</Badge>}
    >
      <p className="text-sm break-all">{user.email}</p>
      {!user.email_verified && (
        <div className="mt-4">
          <SendLink />
        </div>
      )}
    </Section>
  )
}
