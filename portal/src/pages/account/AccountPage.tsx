import { PageHeader } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { EmailSection } from './EmailSection'
import { IdentitiesSection } from './IdentitiesSection'
import { PasskeysSection } from './PasskeysSection'
import { PasswordSection } from './PasswordSection'
import { SecondFactorSection } from './SecondFactorSection'
import { SessionsSection } from './SessionsSection'

export function AccountPage() {
  usePageTitle('Your account')
  return (
    <>
      <PageHeader
        title="Your account"
        description="It is yours alone, in every organization of which you are a member."
      />
      <div className="max-w-3xl space-y-5">
        <EmailSection />
        <PasswordSection />
        <PasskeysSection />
        <IdentitiesSection />
        <SecondFactorSection />
        <SessionsSection />
      </div>
    </>
  )
}
