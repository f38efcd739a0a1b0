import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, keys, quotasQuery, type Quota } from '@/api'
import { count } from '@/format/quantity'
import { useMay } from '@/session'
import { Button } from '@/ui/Button'
import { LoadFailed, ProblemNotice } from '@/ui/Notice'
import { Card, Loading, PageHeader, Skeleton } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { QuotaRequestDialog } from './QuotaRequestDialog'

const NEARLY_FULL = 0.8

export function QuotasPage() {
  usePageTitle('Quotas')
  const quotas = useQuery(quotasQuery)
  const mayAsk = useMay('administer')
  const [asking, setAsking] = useState<Quota | null>(null)
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
            <QuotaRow key={quota.code} quota={quota} onAsk={mayAsk ? () => setAsking(quota) : undefined} />
          ))}
        </Card>
      )}
      {asking && <QuotaRequestDialog quota={asking} onClose={() => setAsking(null)} />}
    </>
  )
}

function QuotaRow({ quota, onAsk }: { quota: Quota; onAsk: (() => void) | undefined }) {
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
      <div className="mt-2 flex flex-wrap items-center justify-between gap-x-4 gap-y-1">
        <p className={`text-[13px] ${full ? 'text-danger-text' : 'text-ink-3'}`}>
          {full
            ? 'Used up. Delete what is not needed, or ask for more.'
            : quota.requested !== null && 'Asked for more.'}
        </p>
        {onAsk && (
          <div className="flex items-center gap-1">
            {quota.requested !== null && <Withdraw quota={quota} />}
            <Button
              variant="quiet"
              size="small"
              className="-mr-3"
              aria-label={`Ask for more: ${quota.description}`}
              onClick={onAsk}
            >
              {quota.requested === null ? 'Ask for more' : `${count(quota.requested)} asked for`}
            </Button>
          </div>
        )}
      </div>
    </div>
  )
}

function Withdraw({ quota }: { quota: Quota }) {
  const queries = useQueryClient()
  const withdrawal = useMutation({
    mutationFn: () => api.withdrawQuotaRequest(quota.code),
    onSuccess: () => queries.invalidateQueries({ queryKey: keys.quotas }),
  })
  return (
    <>
      {withdrawal.error && <ProblemNotice error={withdrawal.error} />}
      <Button variant="quiet" size="small" busy={withdrawal.isPending} onClick={() => withdrawal.mutate()}>
        Withdraw
      </Button>
    </>
  )
}
