import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { api, keys, type Group } from '@/api'
import { money } from '@/format/money'
import { bytes, rate } from '@/format/quantity'
import { moment } from '@/format/time'
import { majority, promised, replicas, word } from '@/format/words'
import { useMay } from '@/session'
import { Button, buttonClass } from '@/ui/Button'
import { ConfirmByName } from '@/ui/ConfirmByName'
import { CopyButton } from '@/ui/Copy'
import { Section } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { CostsSection } from './CostsSection'
import { useGroup } from './GroupPage'
import { hindranceOf } from './resize/resize'
import { TerraformSection } from './terraform/TerraformSection'

export function SettingsTab() {
  const group = useGroup()
  usePageTitle('Settings', group.name)
  const mayManage = useMay('manage')
  return (
    <div className="max-w-3xl space-y-5">
      <Facts group={group} mayManage={mayManage} />
      <CostsSection group={group} />
      {typeof group.partition_of !== 'string' && <TerraformSection group={group} />}
      {mayManage && <Deletion group={group} />}
    </div>
  )
}

function Facts({ group, mayManage }: { group: Group; mayManage: boolean }) {
  const { sla } = group
  const hindrance = hindranceOf(group)
  return (
    <Section
      title="SLA"
      description="What the service promises, and what you pay for."
      aside={
        mayManage &&
        hindrance === undefined && (
          <Link
            to="/projects/$projectId/groups/$groupId/resize"
            params={{ projectId: group.project_id, groupId: group.id }}
            className={buttonClass('secondary', 'small')}
          >
            Resize
          </Link>
        )
      }
    >
      <dl className="nums divide-y divide-line text-sm">
        <Fact term="Group id">
          <span className="font-mono text-[13px] break-all">{group.id}</span>
          <CopyButton text={group.id} label="Copy group id" />
        </Fact>
        <Fact term="Created">{moment(group.created_at)}</Fact>
        <Fact term="Durability">{word(sla.durability)}</Fact>
        <Fact term="Replication degree">{replicas(sla.replication_degree)}</Fact>
        <Fact term="Appends pause below">{replicas(sla.min_replicas ?? majority(sla.replication_degree))}</Fact>
        <Fact term="Partitions">{group.partitions ?? 1}</Fact>
        <Fact term="Reserved rate">{rate(sla.rate_per_s)}</Fact>
        <Fact term="Reserved reads">{sla.read_rate_per_s ? rate(sla.read_rate_per_s) : 'None: what is spare'}</Fact>
        <Fact term="Request size">{bytes(sla.request_size_bytes)}</Fact>
        <Fact term="Promise">{promised(group.promise)}</Fact>
        <Fact term="Retention">{bytes(sla.retention_bytes)}</Fact>
        <Fact term="Region">{sla.region}</Fact>
        <Fact term="Reservation">{money(group.price.hourly_micros, group.price.currency)} per hour</Fact>
      </dl>
    </Section>
  )
}

function Fact({ term, children }: { term: string; children: ReactNode }) {
  return (
    <div className="flex min-h-11 flex-wrap items-center justify-between gap-x-6 py-1.5">
      <dt className="text-ink-3">{term}</dt>
      <dd className="flex min-w-0 items-center gap-1">{children}</dd>
    </div>
  )
}

function Deletion({ group }: { group: Group }) {
  const [open, setOpen] = useState(false)
  const queries = useQueryClient()
  const navigate = useNavigate()
  const deletion = useMutation({
    mutationFn: () => api.deleteGroup(group.id),
    onSuccess: async () => {
      await navigate({ to: '/projects/$projectId/groups', params: { projectId: group.project_id } })
      queries.removeQueries({ queryKey: keys.group(group.id) })
      void queries.invalidateQueries({ queryKey: keys.groups(group.project_id) })
      void queries.invalidateQueries({ queryKey: keys.quotas })
    },
  })
  const going = group.status === 'deleting' || group.status === 'deleted'
  const isPartition = typeof group.partition_of === 'string'
  return (
    <Section
      title="Delete this group"
      description="Its entries are gone for good and its reservation ends at once. Invoices and SLA reports stay."
    >
      <Button
        variant="danger"
        disabledReason={
          going
            ? 'This group is being deleted already.'
            : isPartition
              ? 'It is a partition: delete the group that it is a partition of.'
              : undefined
        }
        onClick={() => setOpen(true)}
      >
        Delete group
      </Button>
      <ConfirmByName
        name={group.name}
        kind="group"
        deed={deletion}
        open={open}
        onOpenChange={setOpen}
        title={`Delete ${group.name}?`}
        description="Every entry of its log is lost and clients get an error at once. This cannot be undone."
        keep="Keep it"
        proceed="Delete for good"
      />
    </Section>
  )
}
