import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { ChevronLeft, Eye } from 'lucide-react'
import { useState } from 'react'
import { api, keys, organizationQuotasQuery, tenantsQuery, type Quota } from '@/api'
import { money } from '@/format/money'
import { count, rate } from '@/format/quantity'
import { Button } from '@/ui/Button'
import { LoadFailed, ProblemNotice } from '@/ui/Notice'
import { Badge } from '@/ui/StatusBadge'
import { Card, Figure, Loading, PageHeader, Section, Skeleton } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { LimitDialog } from './QuotaDialogs'
import { TONES, WORDS } from './standing'
import { SuspensionDialog } from './SuspensionDialog'
import { ViewDialog } from './ViewDialog'

const route = getRouteApi('/operator/organizations/$organizationId')
const CURRENCY = 'USD'

/** One organization: its reservations and quotas, a look at it, and its suspension. */
export function TenantPage() {
  const { organizationId } = route.useParams()
  const found = useInfiniteQuery(tenantsQuery(organizationId))
  const tenant = found.data?.pages[0]?.items.find(({ id }) => id === organizationId)
  const [suspending, setSuspending] = useState(false)
  const [viewing, setViewing] = useState(false)
  usePageTitle(tenant?.name ?? 'Organization')
  return (
    <>
      <Link
        to="/operator/organizations"
        className="mb-4 -ml-1 inline-flex items-center gap-1 rounded text-[13px] text-ink-2 hover:text-ink"
      >
        <ChevronLeft aria-hidden className="size-4" />
        Organizations
      </Link>
      {found.isPending && (
        <Loading label="Loading the organization">
          <Skeleton className="h-40 w-full rounded-2xl" />
        </Loading>
      )}
      {found.error && !found.data && (
        <LoadFailed what="the organization" error={found.error} retry={() => void found.refetch()} />
      )}
      {found.data && !tenant && (
        <PageHeader title="There is no such organization" description="It was erased, or the address is cut short." />
      )}
      {tenant && (
        <>
          <PageHeader
            title={tenant.name}
            description={<code className="font-mono text-[13px]">{tenant.id}</code>}
            actions={
              <>
                <Button
                  variant="secondary"
                  icon={<Eye aria-hidden className="size-4" />}
                  onClick={() => setViewing(true)}
                >
                  View as a member
                </Button>
                {tenant.standing !== 'closed' && (
                  <Button variant="secondary" onClick={() => setSuspending(true)}>
                    {tenant.standing === 'suspended' ? 'End suspension' : 'Suspend'}
                  </Button>
                )}
              </>
            }
          />
          <Card className="mb-6 p-5 sm:p-6">
            <dl className="grid grid-cols-2 gap-6 sm:grid-cols-5">
              <Figure label="Standing">
                <Badge tone={TONES[tenant.standing]}>{WORDS[tenant.standing]}</Badge>
              </Figure>
              <Figure label="Members">{count(tenant.members)}</Figure>
              <Figure label="Groups">{count(tenant.groups)}</Figure>
              <Figure label="Reserved">{rate(tenant.rate_per_s)}</Figure>
              <Figure label="An hour">{money(tenant.hourly_micros, CURRENCY)}</Figure>
            </dl>
          </Card>
          <Quotas organizationId={tenant.id} />
          <SuspensionDialog tenant={suspending ? tenant : null} onClose={() => setSuspending(false)} />
          {viewing && <ViewDialog tenant={tenant} onClose={() => setViewing(false)} />}
        </>
      )}
    </>
  )
}

function Quotas({ organizationId }: { organizationId: string }) {
  const queries = useQueryClient()
  const found = useQuery(organizationQuotasQuery(organizationId))
  const [chosen, setChosen] = useState<Quota | null>(null)
  const resetting = useMutation({
    mutationFn: (code: string) => api.resetQuota(organizationId, code),
    onSuccess: () => queries.invalidateQueries({ queryKey: keys.operator }),
  })
  return (
    <Section title="Quotas" description="Its limits, and how much of each is used.">
      {found.isPending && <Skeleton className="h-48 w-full" />}
      {found.error && !found.data && (
        <LoadFailed what="the quotas" error={found.error} retry={() => void found.refetch()} />
      )}
      <ul aria-label="Quotas" className="divide-y divide-line">
        {found.data?.map((quota) => (
          <li key={quota.code} className="flex flex-wrap items-center gap-x-6 gap-y-1 py-3 first:pt-0 last:pb-0">
            <div className="min-w-0 basis-full text-sm sm:flex-1 sm:basis-0">
              <p>{quota.description}</p>
              <p className="mt-0.5 text-[13px] text-ink-3">
                <code className="font-mono">{quota.code}</code>
                {!quota.is_default && ', set by operators'}
                {quota.requested !== null && `, ${count(quota.requested)} asked for`}
              </p>
            </div>
            <p className="nums text-sm">
              <span className="font-semibold">{count(quota.used)}</span>{' '}
              <span className="text-ink-3">of {count(quota.limit)}</span>
            </p>
            <div className="ml-auto flex justify-end gap-1 sm:w-44">
              {!quota.is_default && (
                <Button
                  variant="quiet"
                  size="small"
                  busy={resetting.isPending && resetting.variables === quota.code}
                  aria-label={`Use the default of ${quota.code}`}
                  onClick={() => resetting.mutate(quota.code)}
                >
                  Use default
                </Button>
              )}
              <Button
                variant="secondary"
                size="small"
                aria-label={`Set ${quota.code}`}
                onClick={() => setChosen(quota)}
              >
                Set
              </Button>
            </div>
          </li>
        ))}
      </ul>
      {resetting.error && <ProblemNotice error={resetting.error} />}
      {chosen && (
        <LimitDialog
          organizationId={organizationId}
          code={chosen.code}
          limit={chosen.requested ?? chosen.limit}
          onClose={() => setChosen(null)}
        />
      )}
    </Section>
  )
}
