import type { Clause } from '@/api'
import { count, latency, percent } from '@/format/quantity'
import { minutesLong } from '@/format/time'
import { Badge } from '@/ui/StatusBadge'
import { Card } from '@/ui/Surface'
import { CLAUSE_NAMES } from './clauses'
import { ErrorBudget } from './ErrorBudget'

function promise(clause: Clause): string {
  if (clause.clause === 'availability') return 'The group accepts appends.'
  if (clause.clause === 'throughput') return 'Nothing is throttled up to the reserved rate.'
  return `p99 of a minute within ${latency(clause.target_p99_us)}.`
}

export function ClauseCard({ clause }: { clause: Clause }) {
  return (
    <Card>
      <div className="flex items-center justify-between gap-3">
        <h3 className="text-sm font-semibold">{CLAUSE_NAMES[clause.clause]}</h3>
        <Badge tone={clause.met ? 'good' : 'danger'}>{clause.met ? 'Met' : 'Missed'}</Badge>
      </div>
      <p className="mt-0.5 text-[13px] text-ink-3">{promise(clause)}</p>
      <p className="nums mt-5 text-3xl font-semibold tracking-tight">
        {clause.attained === null ? '–' : percent(clause.attained, 4)}
      </p>
      <p className="nums mt-0.5 text-[13px] text-ink-3">target {percent(clause.target)}</p>
      <ErrorBudget clause={clause} />
      <dl className="nums mt-5 space-y-1.5 border-t border-line pt-4 text-[13px]">
        <Row term="Good minutes">{count(clause.good_minutes)}</Row>
        <Row term="Bad minutes">
          {clause.bad_minutes === 0 ? '0' : `${count(clause.bad_minutes)} (${minutesLong(clause.bad_minutes)})`}
        </Row>
        <Row term="Credit">{clause.credit_percent === 0 ? 'None' : `${clause.credit_percent} % of the fee`}</Row>
      </dl>
    </Card>
  )
}

function Row({ term, children }: { term: string; children: string }) {
  return (
    <div className="flex justify-between gap-4">
      <dt className="text-ink-3">{term}</dt>
      <dd>{children}</dd>
    </div>
  )
}
