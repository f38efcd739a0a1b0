import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, joinTokensQuery, keys, type KnownJoinToken } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { TextField } from '@/ui/Field'
import { LoadFailed, ProblemNotice } from '@/ui/Notice'
import { SecretOnce } from '@/ui/SecretOnce'
import { Badge } from '@/ui/StatusBadge'
import { Section } from '@/ui/Surface'
import { Ago } from '@/ui/Time'

const TONES = { outstanding: 'busy', used: 'good', expired: 'plain', revoked: 'plain' } as const

/** A server joins the fleet with one of them, once. */
export function JoinTokens() {
  const queries = useQueryClient()
  const found = useQuery(joinTokensQuery)
  const [making, setMaking] = useState(false)
  const revocation = useMutation({
    mutationFn: (token: KnownJoinToken) => api.revokeJoinToken(token.id),
    onSuccess: () => queries.invalidateQueries({ queryKey: keys.operator }),
  })
  const shown = (found.data ?? []).filter((token) => token.state === 'outstanding')
  return (
    <Section
      title="Join tokens"
      description="A new server joins with one, once. Give it to the machine in a file that its user alone may read."
      aside={
        <Button variant="secondary" size="small" onClick={() => setMaking(true)}>
          New join token
        </Button>
      }
    >
      {found.error && !found.data && (
        <LoadFailed what="the join tokens" error={found.error} retry={() => void found.refetch()} />
      )}
      {revocation.error && <ProblemNotice error={revocation.error} />}
      {found.data && shown.length === 0 && <p className="text-sm text-ink-2">None is outstanding.</p>}
      <ul className="divide-y divide-line">
        {shown.map((token) => (
          <li key={token.id} className="flex flex-wrap items-center gap-3 py-2.5 text-sm">
            <code className="font-mono text-[13px]">{token.id}</code>
            <span className="min-w-0 flex-1 text-ink-2">
              {token.name ? `for ${token.name}` : 'for any name'}
              {token.auxiliary && ', auxiliary'}, ends <Ago at={token.expires_at} />
            </span>
            <Badge tone={TONES[token.state]}>Outstanding</Badge>
            <Button
              variant="quiet"
              size="small"
              aria-label={`Revoke ${token.id}`}
              busy={revocation.isPending && revocation.variables === token}
              onClick={() => revocation.mutate(token)}
            >
              Revoke
            </Button>
          </li>
        ))}
      </ul>
      <NewJoinTokenDialog open={making} onOpenChange={setMaking} />
    </Section>
  )
}

function NewJoinTokenDialog({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const queries = useQueryClient()
  const [name, setName] = useState('')
  const creation = useMutation({
    mutationFn: () => api.createJoinToken({ name: name.trim() || null }),
    onSuccess: () => queries.invalidateQueries({ queryKey: keys.operator }),
  })
  const change = (next: boolean) => {
    onOpenChange(next)
    if (next) return
    setName('')
    creation.reset()
  }
  return (
    <Dialog open={open} onOpenChange={change} title={creation.data ? 'The join token is ready' : 'New join token'}>
      {creation.data ? (
        <>
          <SecretOnce what="secret" secret={creation.data.token} note="It ends by itself, and after one server." />
          <div className="mt-5 flex justify-end">
            <Button onClick={() => change(false)}>I have kept it</Button>
          </div>
        </>
      ) : (
        <form
          className="space-y-4"
          onSubmit={(event) => {
            event.preventDefault()
            creation.mutate()
          }}
        >
          <TextField
            label="Name of the server"
            hint="Optional: only a server of this name joins with it."
            value={name}
            onChange={(event) => setName(event.target.value)}
            autoComplete="off"
          />
          {creation.error && <ProblemNotice error={creation.error} />}
          <div className="flex justify-end">
            <Button type="submit" busy={creation.isPending}>
              Make token
            </Button>
          </div>
        </form>
      )}
    </Dialog>
  )
}
