import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { slaQuery, type SlaReport } from '@/api'
import { count } from '@/format/quantity'
import { monthName, monthOf, monthsBack } from '@/format/time'
import { LoadFailed, Notice } from '@/ui/Notice'
import { EmptyState, Loading, Section, Skeleton } from '@/ui/Surface'
import { useNow } from '@/ui/Time'
import { usePageTitle } from '@/ui/title'
import { INPUT } from '@/ui/Field'
import { useGroup } from '../GroupPage'
import { BadMinutes } from './BadMinutes'
import { ClauseCard } from './ClauseCard'
import { Corrections } from './Corrections'
import { Incidents } from './Incidents'
import { MonthStrip } from './MonthStrip'
import { KeptCard } from './KeptCard'
import { CLAUSE_NAMES, MEASURED } from './clauses'

const route = getRouteApi('/app/projects/$projectId/groups/$groupId/sla')
const MONTHS_SHOWN = 13

export function SlaTab() {
  const group = useGroup()
  usePageTitle('SLA', group.name)
  const now = new Date(useNow())
  const { month = monthOf(now) } = route.useSearch()
  const report = useQuery(slaQuery(group.id, month))
  return (
    <div className="space-y-5">
      <div className="flex flex-wrap items-center justify-between gap-3">
        <MonthSelect month={month} months={monthsSince(group.created_at, now)} />
        {report.data && report.data.minutes_counted > 0 && (
          <p className="nums text-[13px] text-ink-3">
            {report.data.minutes_counted === 1 ? '1 minute' : `${count(report.data.minutes_counted)} minutes`} counted,
            in UTC
          </p>
        )}
      </div>
      {report.isPending && (
        <Loading label="Loading SLA report">
          <div className="grid gap-5 md:grid-cols-3">
            <Skeleton className="h-56 rounded-2xl" />
            <Skeleton className="h-56 rounded-2xl" />
            <Skeleton className="h-56 rounded-2xl" />
          </div>
        </Loading>
      )}
      {report.error && !report.data && (
        <LoadFailed what="the SLA report" error={report.error} retry={() => void report.refetch()} />
      )}
      {report.data &&
        (report.data.minutes_counted === 0 ? (
          <NothingCounted month={month} />
        ) : (
          <Report report={report.data} nowMs={now.getTime()} open={month === monthOf(now)} />
        ))}
    </div>
  )
}

function MonthSelect({ month, months }: { month: string; months: string[] }) {
  const navigate = route.useNavigate()
  const choices = months.includes(month) ? months : [month, ...months]
  return (
    <select
      aria-label="Month"
      value={month}
      onChange={(event) => void navigate({ search: { month: event.target.value }, replace: true })}
      className={`${INPUT} max-w-56`}
    >
      {choices.map((each) => (
        <option key={each} value={each}>
          {monthName(each)}
        </option>
      ))}
    </select>
  )
}

/** The months in which the group existed, newest first. */
function monthsSince(createdAt: string, now: Date): string[] {
  return monthsBack(now, MONTHS_SHOWN).filter((month) => month >= createdAt.slice(0, 7))
}

function NothingCounted({ month }: { month: string }) {
  return (
    <EmptyState title={`Nothing counted in ${monthName(month)}`}>
      Every minute is measured from the moment that the group is active, and is counted when it is over.
    </EmptyState>
  )
}

function Report({ report, nowMs, open }: { report: SlaReport; nowMs: number; open: boolean }) {
  const missed = report.clauses.filter((clause) => !clause.met)
  const measured = report.clauses.filter((clause) => MEASURED.includes(clause.clause))
  const kept = report.clauses.filter((clause) => !MEASURED.includes(clause.clause))
  return (
    <>
      {missed.length === 0 ? (
        <Notice tone="good" title="Every clause is met">
          No credit is due for {open ? 'this month so far' : monthName(report.month)}.
        </Notice>
      ) : (
        <Notice
          tone="warn"
          title={`${missed.map((clause) => CLAUSE_NAMES[clause.clause]).join(' and ')} missed${open ? ' so far' : ''}: ${report.credit_percent} % credit`}
        >
          {open
            ? 'That is as it stands; it is settled when the month is over. The credit then comes by itself: you need not claim it.'
            : 'The credit came by itself. You need not claim it.'}
        </Notice>
      )}
      <div className="grid gap-5 md:grid-cols-3">
        {measured.map((clause) => (
          <ClauseCard key={clause.clause} clause={clause} />
        ))}
      </div>
      <div className="grid gap-5 md:grid-cols-2">
        {kept.map((clause) => (
          <KeptCard key={clause.clause} clause={clause} periods={report.periods} />
        ))}
      </div>
      <p className="max-w-prose text-[13px] text-ink-3">
        The error budget is what the target lets a month miss. At a burn rate of 1 × it lasts exactly until the month’s
        end; faster, it ends before.
      </p>
      <Section
        title="Incidents"
        description="Minutes in a row that missed a clause, with the reason that the servers gave."
      >
        <MonthStrip month={report.month} incidents={report.incidents} nowMs={nowMs} />
        <Incidents incidents={report.incidents} />
        {report.incidents.length > 0 && (
          <BadMinutes key={report.month} groupId={report.group_id} month={report.month} />
        )}
      </Section>
      <Corrections corrections={report.corrections} />
    </>
  )
}
