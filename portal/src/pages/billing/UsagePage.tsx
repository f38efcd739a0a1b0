import { Link } from '@tanstack/react-router'
import { buttonClass } from '@/ui/Button'
import { PageHeader } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { CommitmentsSection } from './commitments/CommitmentsSection'
import { SpendSection } from './spend/SpendSection'

/** This month by day, project and group; budgets and commitments. */
export function UsagePage() {
  usePageTitle('Usage and cost')
  return (
    <>
      <PageHeader
        title="Usage and cost"
        description="This month until now and by its end, by day, project and group; budgets and commitments."
        actions={
          <Link to="/invoices" className={buttonClass('secondary')}>
            Invoices
          </Link>
        }
      />
      <div className="max-w-4xl space-y-9">
        <SpendSection />
        <CommitmentsSection />
      </div>
    </>
  )
}
