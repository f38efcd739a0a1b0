import type { Clause, SlaReport } from '@/api'
import { minutesLong } from '@/format/time'
import { Badge } from '@/ui/StatusBadge'
import { Card } from '@/ui/Surface'
import { CLAUSE_NAMES } from './clauses'

function promise(clause: Clause, periods: SlaReport['periods']): string {
  if (clause.clause === 'order') return 'Everybody reads the same entries in the same order, each once.'
  return periods.length > 0 && periods.every(({ sla }) => sla.replication_degree === 1)
    ? 'Not promised: the group has a single replica.'
    : 'No acknowledged entry is lost.'
}

/** A clause that may never be missed. It has no error budget. */
export function KeptCard({ clause, periods }: { clause: Clause; periods: SlaReport['periods'] }) {
  return (
    <Card>
      <div className="flex items-center justify-between gap-3">
        <h3 className="text-sm font-semibold">{CLAUSE_NAMES[clause.clause]}</h3>
        <Badge tone={clause.met ? 'good' : 'danger'}>{clause.met ? 'Kept' : 'Breached'}</Badge>
      </div>
      <p className="mt-0.5 text-[13px] text-ink-3">{promise(clause, periods)}</p>
      {!clause.met && (
        <p className="nums mt-3 text-[13px]">
          In {minutesLong(clause.bad_minutes)}: a credit of {clause.credit_percent} % of the fee
        </p>
      )}
    </Card>
  )
}
