import { Link } from '@tanstack/react-router'
import { usePageTitle } from '@/ui/title'
import { Keys } from './Keys'
import { ORGANIZATION } from './scopes'

/** Keys of the organization: for Terraform and other automation, which belong to no person and no project. */
export function ServiceAccountsPage() {
  usePageTitle('Service accounts')
  return (
    <Keys
      owner={ORGANIZATION}
      title="Service accounts"
      description="Keys for automation on all projects, such as Terraform. They stay when the person who made them leaves."
      make="New service account"
      empty={{
        title: 'No service accounts yet',
        text: 'Make one for each pipeline, with no more rights than it needs.',
      }}
    >
      <p className="mt-6 max-w-prose text-[13px] text-ink-3">
        A program that only appends and reads needs a key of its project. How to begin with Terraform:{' '}
        <Link to="/docs/$guide" params={{ guide: 'terraform' }} className="underline underline-offset-4">
          the guide
        </Link>
        .
      </p>
    </Keys>
  )
}
