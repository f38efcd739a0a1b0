import { useQuery } from '@tanstack/react-query'
import { quotasQuery, type Quota } from '@/api'
import { count } from '@/format/quantity'
import { LoadFailed } from '@/ui/Notice'
import { Card, Loading, PageHeader, Skeleton } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'

const NEARLY_FULL = 0.8

export function QuotasPage() {
  usePageTitle('Quotas')
  const quotas = useQuery(quotasQuery)
  return (
    <>
      <PageHeader title="Quotas" description="Your organization’s limits, and how much of each is used." />
      {quotas.isPending && (
        <Loading label="Loading quotas">
          <Skeleton className="h-72 w-full rounded-2xl" />
        </Loading>
      )}
      {quotas.error && !quotas.data && (
        <LoadFailed what="the quotas" error={quotas.error} retry={() => void quotas.refetch()} />
      )}
      {quotas.data && (
        <Card className="max-w-3xl divide-y divide-line px-5 sm:px-6">
          {quotas.data.map((quota) => (
            <QuotaRow key={quota.code} quota={quota} />
          ))}
        </Card>
      )}
    </>
  )
}

function QuotaRow({ quota }: { quota: Quota }) {
  const share = quota.limit === 0 ? 1 : Math.min(1, quota.used / quota.limit)
  const full = quota.used >= quota.limit
  const colour = full ? 'bg-danger' : share >= NEARLY_FULL ? 'bg-warn' : 'bg-accent'
  return (
    <div className="py-5">
      <div className="flex flex-wrap items-baseline justify-between gap-x-6 gap-y-1">
        <h2 className="text-sm font-medium">{quota.description}</h2>
        <p className="nums text-sm">
          <span className="font-semibold">{count(quota.used)}</span>{' '}
          <span className="text-ink-3">of {count(quota.limit)}</span>
        </p>
      </div>
      <div
        role="meter"
        aria-label={quota.description}
        aria-valuemin={0}
        aria-valuemax={quota.limit}
        aria-valuenow={Math.min(quota.used, quota.limit)}
        className="mt-3 h-1.5 overflow-hidden rounded-full bg-line"
      >
        <div className={`h-full rounded-full ${colour}`} style={{ width: `${share * 100}%` }} />
      </div>
      {full && (
        <p className="mt-2 text-[13px] text-danger-text">Used up. Delete what is not needed, or ask for more.</p>
      )}
    </div>
  )
}
