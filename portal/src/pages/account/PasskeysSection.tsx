import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { addPasskey, api, keys, passkeysQuery, type Passkey } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { TextField } from '@/ui/Field'
import { LoadFailed, ProblemNotice } from '@/ui/Notice'
import { Loading, Section, Skeleton } from '@/ui/Surface'
import { Ago } from '@/ui/Time'
import { deviceOf } from './device'

export function PasskeysSection() {
  const queries = useQueryClient()
  const found = useQuery(passkeysQuery)
  const [adding, setAdding] = useState(false)
  const removal = useMutation({
    mutationFn: api.removePasskey,
    onSuccess: () => queries.invalidateQueries({ queryKey: keys.passkeys }),
  })
  return (
    <Section
      title="Passkeys"
      description="Log in with your fingerprint, face or PIN, in place of password and code."
      aside={
        found.data && (
          <Button variant="secondary" size="small" onClick={() => setAdding(true)}>
            Add a passkey
          </Button>
        )
      }
    >
      {found.isPending && (
        <Loading label="Loading passkeys">
          <Skeleton className="h-9 w-48" />
        </Loading>
      )}
      {found.error && <LoadFailed what="your passkeys" error={found.error} retry={() => void found.refetch()} />}
      {found.data?.length === 0 && <p className="text-sm text-ink-3">You have none yet.</p>}
      {found.data && found.data.length > 0 && (
        <ul aria-label="Passkeys" className="divide-y divide-line">
          {found.data.map((passkey) => (
            <Row
              key={passkey.id}
              passkey={passkey}
              busy={removal.isPending && removal.variables === passkey.id}
              onRemove={() => removal.mutate(passkey.id)}
            />
          ))}
        </ul>
      )}
      {removal.error && <ProblemNotice error={removal.error} />}
      <Dialog
        open={adding}
        onOpenChange={setAdding}
        title="Add a passkey"
        description="Your browser asks for your fingerprint, face or PIN, or for a security key."
      >
        <Adding onDone={() => setAdding(false)} />
      </Dialog>
    </Section>
  )
}

function Row({ passkey, busy, onRemove }: { passkey: Passkey; busy: boolean; onRemove: () => void }) {
  return (
    <li className="flex items-center gap-4 py-3 first:pt-0 last:pb-0">
      <span className="min-w-0 flex-1">
        <span className="block truncate text-sm font-medium">{passkey.name}</span>
        <span className="block text-[13px] text-ink-3">
          added <Ago at={passkey.created_at} />
          {passkey.last_used_at ? (
            <>
              , used <Ago at={passkey.last_used_at} />
            </>
          ) : (
            ', never used'
          )}
        </span>
      </span>
      <Button variant="quiet" size="small" busy={busy} onClick={onRemove} aria-label={`Remove ${passkey.name}`}>
        Remove
      </Button>
    </li>
  )
}

function Adding({ onDone }: { onDone: () => void }) {
  const queries = useQueryClient()
  const [name, setName] = useState(() => deviceOf(navigator.userAgent))
  const adding = useMutation({
    mutationFn: addPasskey,
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: keys.passkeys })
      onDone()
    },
  })
  return (
    <form
      className="space-y-4"
      onSubmit={(event) => {
        event.preventDefault()
        if (name.trim()) adding.mutate(name.trim())
      }}
    >
      <TextField
        label="Name"
        value={name}
        onChange={(event) => setName(event.target.value)}
        maxLength={100}
        autoComplete="off"
        hint="By which you will know it in the list."
      />
      {adding.error && <ProblemNotice error={adding.error} />}
      <div className="flex justify-end">
        <Button type="submit" busy={adding.isPending} disabledReason={name.trim() ? undefined : 'Give it a name.'}>
          Go on
        </Button>
      </div>
    </form>
  )
}
