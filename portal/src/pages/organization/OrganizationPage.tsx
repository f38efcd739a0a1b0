import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, organizationQuery, type OrganizationStanding } from '@/api'
import { useMay } from '@/session'
import { Button } from '@/ui/Button'
import { CopyButton } from '@/ui/Copy'
import { LoadFailed, ProblemNotice } from '@/ui/Notice'
import { saveFile } from '@/ui/saveFile'
import { Badge } from '@/ui/StatusBadge'
import { Loading, PageHeader, Section, Skeleton } from '@/ui/Surface'
import { Minute } from '@/ui/Time'
import { usePageTitle } from '@/ui/title'
import { CloseDialog } from './CloseDialog'
import { useReopen } from './useReopen'

export function OrganizationPage() {
  usePageTitle('Organization')
  const found = useQuery(organizationQuery)
  return (
    <>
      <PageHeader title="Organization" description="Its name, all data that we keep of it, and its end." />
      {found.isPending && (
        <Loading label="Loading the organization">
          <Skeleton className="h-72 w-full rounded-2xl" />
        </Loading>
      )}
      {found.error && !found.data && (
        <LoadFailed what="the organization" error={found.error} retry={() => void found.refetch()} />
      )}
      {found.data && <Found organization={found.data} />}
    </>
  )
}

const TONES = { active: 'good', suspended: 'danger', closing: 'warn', closed: 'plain' } as const
const WORDS = { active: 'Active', suspended: 'Suspended', closing: 'Closing', closed: 'Closed' }

function Found({ organization }: { organization: OrganizationStanding }) {
  const isOwner = useMay('own')
  return (
    <div className="space-y-6">
      <Section
        title={organization.name}
        aside={<Badge tone={TONES[organization.standing]}>{WORDS[organization.standing]}</Badge>}
      >
        <dl className="grid gap-x-6 gap-y-2 text-sm sm:grid-cols-[9rem_minmax(0,1fr)]">
          <dt className="text-ink-3">Id</dt>
          <dd className="flex items-center gap-1">
            <code className="font-mono text-[13px] break-all">{organization.id}</code>
            <CopyButton text={organization.id} label="Copy the organization's id" />
          </dd>
          <dt className="text-ink-3">Since</dt>
          <dd>
            <Minute at={organization.created_at} />
          </dd>
        </dl>
      </Section>
      {isOwner && <Export />}
      {isOwner && <End organization={organization} />}
    </div>
  )
}

function Export() {
  const exporting = useMutation({
    mutationFn: async () => saveFile(await api.exportOrganization(), 'quorate-organization.jsonl'),
  })
  return (
    <Section
      title="All your data"
      description="Members, projects, groups, invoices, usage by day, SLA reports, the audit log: as JSON lines, one a row. The last line shows that none is missing. The entries of your logs you read with an SDK."
    >
      {exporting.error && <ProblemNotice error={exporting.error} />}
      <Button variant="secondary" busy={exporting.isPending} onClick={() => exporting.mutate()}>
        Download everything
      </Button>
    </Section>
  )
}

function End({ organization }: { organization: OrganizationStanding }) {
  const [closing, setClosing] = useState(false)
  const reopening = useReopen()
  if (organization.standing === 'closed')
    return (
      <Section title="Closed" description="Its groups are deleted, and invoices can be read still.">
        <p className="text-sm">
          Data about people is erased after {organization.erased_after && <Minute at={organization.erased_after} />}.
          Invoices are kept, as the law asks.
        </p>
      </Section>
    )
  if (organization.closes_at)
    return (
      <Section
        title="It is closing"
        description="Groups refuse appends and reads. Then they are deleted, with their logs."
      >
        <p className="mb-4 text-sm">
          It closes <Minute at={organization.closes_at} />. Reservations are paid until then; delete groups to pay less.
        </p>
        {reopening.error && <ProblemNotice error={reopening.error} />}
        <Button busy={reopening.isPending} onClick={() => reopening.mutate()}>
          Reopen the organization
        </Button>
      </Section>
    )
  return (
    <Section
      title="Close the organization"
      description="Groups stop at once. For two weeks an owner can reopen it; then groups and their logs are deleted."
    >
      <Button variant="danger" onClick={() => setClosing(true)}>
        Close the organization
      </Button>
      <CloseDialog organization={organization} open={closing} onOpenChange={setClosing} />
    </Section>
  )
}
