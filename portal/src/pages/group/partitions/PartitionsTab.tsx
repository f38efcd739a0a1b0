import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { partitionsQuery, type Group, type GroupPartitions } from '@/api'
import { money } from '@/format/money'
import { rate } from '@/format/quantity'
import { useMay } from '@/session'
import { Button } from '@/ui/Button'
import { LoadFailed, Notice } from '@/ui/Notice'
import { Section, Skeleton } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { useGroup } from '../GroupPage'
import { AddPartitionsDialog } from './AddPartitionsDialog'
import { PartitionsTable } from './PartitionsTable'

/** How the group is divided: each partition's servers, load, rate and price. */
export function PartitionsTab() {
  const group = useGroup()
  usePageTitle('Partitions', group.name)
  const partitions = useQuery(partitionsQuery(group.id))
  return (
    <div className="space-y-5">
      {partitions.isPending && <Skeleton className="h-48 w-full rounded-2xl" />}
      {partitions.error && !partitions.data && (
        <LoadFailed what="the partitions" error={partitions.error} retry={() => void partitions.refetch()} />
      )}
      {partitions.data && <Partitions group={group} partitions={partitions.data} />}
    </div>
  )
}

function Partitions({ group, partitions }: { group: Group; partitions: GroupPartitions }) {
  const [open, setOpen] = useState(false)
  const mayManage = useMay('manage')
  const count = partitions.items.length
  const inUse = partitions.items.filter((each) => each.in_use).length
  return (
    <>
      <Section
        title={count === 1 ? 'One log' : `${count} partitions`}
        description={
          count === 1
            ? 'All entries have one order. Divide the group when it needs more than one server gives, or when keys can have orders of their own.'
            : `Keys are divided among ${count} logs, each with its own order: ${rate(group.sla.rate_per_s)} in all, ${money(group.price.hourly_micros, group.price.currency)} an hour.`
        }
        aside={
          mayManage && (
            <Button
              variant="secondary"
              onClick={() => setOpen(true)}
              disabledReason={partitions.is_changing ? 'Partitions are being changed already.' : undefined}
            >
              Add partitions
            </Button>
          )
        }
      >
        {partitions.is_changing && (
          <div className="mb-4">
            <Notice tone="info" title={inUse < count ? 'Partitions are being added' : 'Partitions are being changed'}>
              {inUse < count
                ? `Clients append to ${inUse} of ${count} until all entries before the change are committed. Appends that arrive meanwhile wait, and none is lost.`
                : 'The change was asked for, and is not carried out yet.'}
            </Notice>
          </div>
        )}
        <PartitionsTable partitions={partitions} currency={group.price.currency} projectId={group.project_id} />
      </Section>
      <AddPartitionsDialog group={group} present={count} open={open} onClose={() => setOpen(false)} />
    </>
  )
}
