import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Group } from '@/api'
import { money } from '@/format/money'
import { bytes, rate } from '@/format/quantity'
import { moment } from '@/format/time'
import { majority, promised, replicas, word } from '@/format/words'
import { useMay } from '@/session'
import { buttonClass } from '@/ui/Button'
import { CopyButton } from '@/ui/Copy'
import { Section } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { CostsSection } from '../CostsSection'
import { useGroup } from '../GroupPage'
import { hindranceOf } from '../resize/resize'
import { TerraformSection } from '../terraform/TerraformSection'
import { DeletionSection } from './DeletionSection'
import { RenameGroup } from './RenameGroup'

export function SettingsTab() {
  const group = useGroup()
  usePageTitle('Settings', group.name)
  const mayManage = useMay('manage')
  return (
    <div className="max-w-3xl space-y-5">
      <Facts group={group} mayManage={mayManage} />
      <CostsSection group={group} />
      {typeof group.partition_of !== 'string' && <TerraformSection group={group} />}
      {mayManage && <DeletionSection group={group} />}
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
        <Fact term="Name">
          <span className="break-words">{group.name}</span>
          {mayManage && typeof group.partition_of !== 'string' && <RenameGroup group={group} />}
        </Fact>
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
