import { useQuery } from '@tanstack/react-query'
import { KeyRound, Plus } from 'lucide-react'
import { useState, type ReactNode } from 'react'
import { apiKeysQuery, type AnyKey } from '@/api'
import { useMay } from '@/session'
import { Button } from '@/ui/Button'
import { DataTable } from '@/ui/DataTable'
import { LoadFailed } from '@/ui/Notice'
import { EmptyState, Loading, PageHeader, Skeleton } from '@/ui/Surface'
import { actions, COLUMNS } from './keyColumns'
import { NewKeyDialog } from './NewKeyDialog'
import { RevokeKeyDialog } from './RevokeKeyDialog'
import { RotateKeyDialog } from './RotateKeyDialog'
import type { KeyOwner } from './scopes'

interface Props {
  owner: KeyOwner
  title: string
  description: string
  /** The words of its button. */
  make: string
  empty: { title: string; text: string }
  children?: ReactNode
}

/** The keys of a project or of the organization: all of them, and a way to make, rotate and revoke one. */
export function Keys({ owner, title, description, make, empty, children }: Props) {
  const found = useQuery(apiKeysQuery(owner))
  const [creating, setCreating] = useState(false)
  const [revoking, setRevoking] = useState<AnyKey | null>(null)
  const [rotating, setRotating] = useState<AnyKey | null>(null)
  const mayChange = useMay('administer')
  const button = mayChange && (
    <Button icon={<Plus aria-hidden className="size-4" />} onClick={() => setCreating(true)}>
      {make}
    </Button>
  )
  return (
    <>
      <PageHeader title={title} description={description} actions={found.data?.length ? button : undefined} />
      {found.isPending && (
        <Loading label={`Loading ${title}`}>
          <Skeleton className="h-48 w-full rounded-2xl" />
        </Loading>
      )}
      {found.error && !found.data && (
        <LoadFailed what="the keys" error={found.error} retry={() => void found.refetch()} />
      )}
      {found.data?.length === 0 && (
        <EmptyState title={empty.title} picture={<KeyRound aria-hidden className="size-8" />} action={button}>
          {mayChange ? empty.text : 'Owners and admins of the organization make them.'}
        </EmptyState>
      )}
      {found.data && found.data.length > 0 && (
        <DataTable
          caption={title}
          columns={mayChange ? [...COLUMNS, actions(setRotating, setRevoking)] : COLUMNS}
          rows={found.data}
          rowId={(key) => key.id}
        />
      )}
      {children}
      <NewKeyDialog owner={owner} title={make} open={creating} onOpenChange={setCreating} />
      <RotateKeyDialog owner={owner} apiKey={rotating} onClose={() => setRotating(null)} />
      <RevokeKeyDialog owner={owner} apiKey={revoking} onClose={() => setRevoking(null)} />
    </>
  )
}
