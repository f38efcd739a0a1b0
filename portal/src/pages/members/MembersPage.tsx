import { useQuery } from '@tanstack/react-query'
import { UserPlus } from 'lucide-react'
import { useState } from 'react'
import { membersQuery, type Member } from '@/api'
import { useMay } from '@/session'
import { Button } from '@/ui/Button'
import { LoadFailed } from '@/ui/Notice'
import { Loading, PageHeader, Skeleton } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { InviteDialog } from './InviteDialog'
import { Invitations } from './Invitations'
import { MembersTable } from './MembersTable'
import { RemoveDialog } from './RemoveDialog'
import { RoleDialog } from './RoleDialog'

export function MembersPage() {
  usePageTitle('Members')
  const found = useQuery(membersQuery)
  const mayInvite = useMay('administer')
  const [inviting, setInviting] = useState(false)
  const [changing, setChanging] = useState<Member | null>(null)
  const [removing, setRemoving] = useState<Member | null>(null)
  return (
    <>
      <PageHeader
        title="Members"
        description="The people of your organization, and what each may do."
        actions={
          mayInvite && (
            <Button icon={<UserPlus aria-hidden className="size-4" />} onClick={() => setInviting(true)}>
              Invite
            </Button>
          )
        }
      />
      {found.isPending && (
        <Loading label="Loading members">
          <Skeleton className="h-48 w-full rounded-2xl" />
        </Loading>
      )}
      {found.error && !found.data && (
        <LoadFailed what="the members" error={found.error} retry={() => void found.refetch()} />
      )}
      {found.data && <MembersTable members={found.data} onChange={setChanging} onRemove={setRemoving} />}
      <Invitations />
      <InviteDialog open={inviting} onOpenChange={setInviting} />
      <RoleDialog member={changing} onClose={() => setChanging(null)} />
      <RemoveDialog member={removing} onClose={() => setRemoving(null)} />
    </>
  )
}
