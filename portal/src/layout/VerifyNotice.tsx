import { SendLink } from '@/pages/account/SendLink'
import { useMe } from '@/session'
import { Notice } from '@/ui/Notice'

/** Above every page until the address is verified. */
export function VerifyNotice() {
  const { user } = useMe()
  if (!user || user.email_verified) return null
  return (
    <div className="mb-6">
      <Notice tone="info" title={`Verify ${user.email}`} action={<SendLink />}>
        Open the link that we mailed to you. Until then your quota is small, and you cannot invite anybody.
      </Notice>
    </div>
  )
}
