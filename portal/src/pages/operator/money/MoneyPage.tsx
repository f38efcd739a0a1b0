import { PageHeader } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { CorrectionsSection } from './CorrectionsSection'
import { InvoiceSection } from './InvoiceSection'
import { PricesSection } from './PricesSection'

export function MoneyPage() {
  usePageTitle('Money')
  return (
    <>
      <PageHeader
        title="Money"
        description="Payments of invoices, corrections of what was measured, and the price lists. Entries are only added."
      />
      <div className="grid items-start gap-6 lg:grid-cols-2">
        <InvoiceSection />
        <CorrectionsSection />
        <PricesSection />
      </div>
    </>
  )
}
