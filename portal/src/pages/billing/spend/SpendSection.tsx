import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { budgetsQuery, spendQuery, type Budget, type Spend } from '@/api'
import { useMe } from '@/session'
import { LoadFailed } from '@/ui/Notice'
import { Loading, Skeleton } from '@/ui/Surface'
import { ActingCaps, AlertBanner, AlertList } from './Alerts'
import { BudgetDialog, type Owner } from './BudgetDialog'
import { DaysChart } from './DaysChart'
import { ProjectsSpend } from './ProjectsSpend'
import { ThisMonth } from './ThisMonth'

/** This month's spend, its forecast and the budgets, above the invoices. */
export function SpendSection() {
  const spend = useQuery(spendQuery)
  const budgets = useQuery(budgetsQuery)
  if (spend.data && budgets.data) return <Shown spend={spend.data} budgets={budgets.data} />
  const error = spend.error ?? budgets.error
  if (error) {
    const retry = () => void Promise.all([spend.refetch(), budgets.refetch()])
    return <LoadFailed what="this month’s spend" error={error} retry={retry} />
  }
  return (
    <Loading label="Loading this month’s spend">
      <div className="space-y-5">
        <Skeleton className="h-64 w-full rounded-2xl" />
        <Skeleton className="h-80 w-full rounded-2xl" />
      </div>
    </Loading>
  )
}

function Shown({ spend, budgets }: { spend: Spend; budgets: Budget[] }) {
  const { organization } = useMe()
  const [owner, setOwner] = useState<Owner | null>(null)
  const budgetOf = (projectId: string | null) => budgets.find(({ project_id }) => project_id === projectId)
  return (
    <div className="space-y-5">
      <ActingCaps budgets={budgets} />
      <AlertBanner budgets={budgets} />
      <ThisMonth
        spend={spend}
        budget={budgetOf(null)}
        onEdit={() => setOwner({ projectId: null, name: organization.name })}
      />
      <DaysChart end={spend.period_end} />
      <ProjectsSpend
        projects={spend.projects}
        budgets={budgets}
        currency={spend.currency}
        onEdit={({ id, name }) => setOwner({ projectId: id, name })}
      />
      <AlertList budgets={budgets} />
      <BudgetDialog
        owner={owner}
        budget={owner ? budgetOf(owner.projectId) : undefined}
        currency={spend.currency}
        onClose={() => setOwner(null)}
      />
    </div>
  )
}
