import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { Scale } from 'lucide-react'
import { useState } from 'react'
import { guaranteeQuery, type ProjectGuarantee } from '@/api'
import { moneyShort } from '@/format/money'
import { count, percent } from '@/format/quantity'
import { useMay } from '@/session'
import { Button } from '@/ui/Button'
import { LoadFailed, Notice } from '@/ui/Notice'
import { Card, EmptyState, Loading, PageHeader, Skeleton } from '@/ui/Surface'
import { Ago } from '@/ui/Time'
import { usePageTitle } from '@/ui/title'
import { inUse, POLICIES, tokensText } from './guarantee'
import { GuaranteeDialog } from './GuaranteeDialog'
import { GuaranteeTable } from './GuaranteeTable'
import { TakeBackDialog } from './TakeBackDialog'

const route = getRouteApi('/app/projects/$projectId/guarantee')

/** One guarantee for all groups of the project: what it is, who uses it, and how it is divided. */
export function GuaranteePage() {
  usePageTitle('Guarantee')
  const { projectId } = route.useParams()
  const found = useQuery(guaranteeQuery(projectId))
  const [changing, setChanging] = useState(false)
  const [ending, setEnding] = useState(false)
  const mayManage = useMay('manage')
  const has = found.data?.since !== null && found.data !== undefined
  return (
    <>
      <PageHeader
        title="Guarantee"
        description="Capacity that any group of this project may use, beside its own rate. It goes where it is wanted, within a second."
        actions={
          has &&
          mayManage && (
            <>
              <Button variant="secondary" onClick={() => setEnding(true)}>
                Take back
              </Button>
              <Button onClick={() => setChanging(true)}>Change</Button>
            </>
          )
        }
      />
      {found.isPending && (
        <Loading label="Loading the guarantee">
          <Skeleton className="h-72 w-full rounded-2xl" />
        </Loading>
      )}
      {found.error && !found.data && (
        <LoadFailed what="the guarantee" error={found.error} retry={() => void found.refetch()} />
      )}
      {found.data && !has && (
        <EmptyState
          title="No guarantee yet"
          picture={<Scale aria-hidden className="size-8" />}
          action={mayManage && <Button onClick={() => setChanging(true)}>Share a guarantee</Button>}
        >
          Reserve once for all groups, instead of the peak of each. Whichever group is busy has it, and servers keep it
          free of others.
        </EmptyState>
      )}
      {found.data && has && <Shown guarantee={found.data} projectId={projectId} />}
      {found.data && (
        <>
          <GuaranteeDialog guarantee={found.data} open={changing} onClose={() => setChanging(false)} />
          <TakeBackDialog guarantee={found.data} open={ending} onClose={() => setEnding(false)} />
        </>
      )}
    </>
  )
}

function Shown({ guarantee, projectId }: { guarantee: ProjectGuarantee; projectId: string }) {
  const { price, policy, max_tokens_per_s: most } = guarantee
  const shown = POLICIES.find(({ name }) => name === (policy.name ?? 'drf'))
  return (
    <div className="space-y-6">
      {!guarantee.is_settled && (
        <Notice tone="warn" title="A change is under way">
          Its answer was lost. It is asked for again by itself, and applied once.
        </Notice>
      )}
      <Card>
        <div className="flex flex-wrap items-start justify-between gap-x-10 gap-y-4">
          <div>
            <p className="nums text-2xl font-semibold tracking-tight">{tokensText(guarantee.shared_tokens_per_s)}</p>
            <p className="mt-1 text-[13px] text-ink-3">
              shared since {guarantee.since && <Ago at={guarantee.since} />}, beside{' '}
              {tokensText(guarantee.own_tokens_per_s)} of the groups’ own
            </p>
          </div>
          <dl className="grid grid-cols-[auto_auto] gap-x-6 gap-y-1 text-sm">
            <dt className="text-ink-3">Price</dt>
            <dd className="nums text-right">{moneyShort(price.monthly_micros, price.currency)} a month</dd>
            <dt className="text-ink-3">Divided</dt>
            <dd className="text-right">{shown?.label}</dd>
            <dt className="text-ink-3">Idle capacity</dt>
            <dd className="nums text-right">
              {most === null ? 'as much as there is' : `to ${tokensText(most)} in all`}
            </dd>
          </dl>
        </div>
        <Meter guarantee={guarantee} />
      </Card>
      <GuaranteeTable guarantee={guarantee} projectId={projectId} />
      <p className="max-w-prose text-[13px] text-ink-3">
        A token is a microsecond of a core, 300 bytes of network or a tenth of a storage operation at one replica,
        whichever an append needs most of.
      </p>
    </div>
  )
}

function Meter({ guarantee }: { guarantee: ProjectGuarantee }) {
  const shared = guarantee.shared_tokens_per_s
  const used = inUse(guarantee)
  const share = shared === 0 ? 0 : used / shared
  return (
    <div className="mt-6">
      <div className="flex flex-wrap items-baseline justify-between gap-x-6 text-[13px]">
        <span className="text-ink-2">In use now</span>
        <span className="nums">
          <span className="font-medium">{count(used)}</span>{' '}
          <span className="text-ink-3">
            of {count(shared)} · {percent(share, 0)}
          </span>
        </span>
      </div>
      <div
        role="meter"
        aria-label="Shared tokens in use"
        aria-valuemin={0}
        aria-valuemax={shared}
        aria-valuenow={used}
        className="mt-2 h-2 overflow-hidden rounded-full bg-line"
      >
        <div
          className="h-full rounded-full bg-accent transition-[width] duration-500"
          style={{ width: `${share * 100}%` }}
        />
      </div>
    </div>
  )
}
