import type { Budget, ProjectSpend } from '@/api'
import { moneyShort } from '@/format/money'
import { useMe } from '@/session'
import { Button } from '@/ui/Button'
import { Section } from '@/ui/Surface'
import { BudgetBar } from './BudgetBar'

interface Props {
  projects: ProjectSpend[]
  budgets: Budget[]
  currency: string
  onEdit: (project: { id: string; name: string }) => void
}

/** Every project with what it costs, and its budget if it has one. */
export function ProjectsSpend({ projects, budgets, currency, onEdit }: Props) {
  const { projects: living } = useMe()
  const known = new Set(projects.map((each) => each.project_id))
  const idle = living
    .filter(({ id }) => !known.has(id))
    .map(({ id, name }) => ({
      project_id: id,
      project_name: name,
      spent_micros: 0,
      forecast_micros: 0,
      previous_micros: 0,
    }))
  const alive = new Set(living.map(({ id }) => id))
  return (
    <Section title="By project" description="What each costs until now, and by the end of the month.">
      <ul className="divide-y divide-line">
        {[...projects, ...idle].map((project) => (
          <Row
            key={project.project_id}
            project={project}
            budget={budgets.find(({ project_id }) => project_id === project.project_id)}
            currency={currency}
            {...(alive.has(project.project_id)
              ? { onEdit: () => onEdit({ id: project.project_id, name: project.project_name }) }
              : {})}
          />
        ))}
      </ul>
    </Section>
  )
}

interface RowProps {
  project: ProjectSpend
  budget: Budget | undefined
  currency: string
  /** Left out for a deleted project. */
  onEdit?: () => void
}

function Row({ project, budget, currency, onEdit }: RowProps) {
  const short = (micros: number) => moneyShort(micros, currency)
  return (
    <li className="py-4 first:pt-1 last:pb-0">
      <div className="flex flex-wrap items-center justify-between gap-x-6 gap-y-2">
        <h3 className="min-w-0 text-sm font-medium break-words">
          {project.project_name}
          {!onEdit && <span className="ml-2 text-[13px] font-normal text-ink-3">deleted</span>}
        </h3>
        <div className="flex items-center gap-4">
          <p className="nums text-right text-sm">
            <span className="font-semibold">{short(project.spent_micros)}</span>{' '}
            <span className="text-ink-3">
              {budget ? `of ${short(budget.monthly_micros)}` : `· ${short(project.forecast_micros)} expected`}
            </span>
          </p>
          {onEdit && (
            <Button
              variant="quiet"
              size="small"
              aria-label={`${budget ? 'Change' : 'Set'} the budget of ${project.project_name}`}
              onClick={onEdit}
            >
              {budget ? 'Change' : 'Set budget'}
            </Button>
          )}
        </div>
      </div>
      {budget && (
        <div className="mt-2.5">
          <BudgetBar
            label={`Budget of ${project.project_name}`}
            budget={budget}
            spent={project.spent_micros}
            forecast={project.forecast_micros}
          />
          <p className="nums mt-1.5 text-[13px] text-ink-3">{short(project.forecast_micros)} expected</p>
        </div>
      )}
    </li>
  )
}
