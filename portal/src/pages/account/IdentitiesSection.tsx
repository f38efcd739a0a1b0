import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api, goToProvider, identitiesQuery, identityProvidersQuery, keys, type Identity } from '@/api'
import { Button } from '@/ui/Button'
import { LoadFailed, ProblemNotice } from '@/ui/Notice'
import { Loading, Section, Skeleton } from '@/ui/Surface'
import { Ago } from '@/ui/Time'

/** Identities at providers. Not shown where the service has no providers and the person no identity. */
export function IdentitiesSection() {
  const queries = useQueryClient()
  const found = useQuery(identitiesQuery)
  const providers = useQuery(identityProvidersQuery)
  const removal = useMutation({
    mutationFn: api.removeIdentity,
    onSuccess: () => queries.invalidateQueries({ queryKey: keys.identities }),
  })
  const connecting = useMutation({
    mutationFn: (provider: { id: string; name: string }) =>
      goToProvider(provider, { purpose: 'connect', next: '/account' }),
  })
  const known = found.data ?? []
  const rest = (providers.data ?? []).filter(({ id }) => !known.some(({ provider }) => provider === id))
  if (!found.error && known.length === 0 && rest.length === 0) return null
  return (
    <Section
      title="Other ways to log in"
      description="With an account that you have elsewhere."
      aside={rest.map((provider) => (
        <Button
          key={provider.id}
          variant="secondary"
          size="small"
          busy={connecting.isPending && connecting.variables.id === provider.id}
          onClick={() => connecting.mutate(provider)}
        >
          Connect {provider.name}
        </Button>
      ))}
    >
      {found.isPending && (
        <Loading label="Loading identities">
          <Skeleton className="h-9 w-48" />
        </Loading>
      )}
      {found.error && <LoadFailed what="your identities" error={found.error} retry={() => void found.refetch()} />}
      {found.data && known.length === 0 && <p className="text-sm text-ink-3">None is connected yet.</p>}
      {known.length > 0 && (
        <ul aria-label="Identities" className="divide-y divide-line">
          {known.map((identity) => (
            <Row
              key={identity.id}
              identity={identity}
              busy={removal.isPending && removal.variables === identity.id}
              onRemove={() => removal.mutate(identity.id)}
            />
          ))}
        </ul>
      )}
      {removal.error && <ProblemNotice error={removal.error} />}
      {connecting.error && <ProblemNotice error={connecting.error} />}
    </Section>
  )
}

function Row({ identity, busy, onRemove }: { identity: Identity; busy: boolean; onRemove: () => void }) {
  return (
    <li className="flex items-center gap-4 py-3 first:pt-0 last:pb-0">
      <span className="min-w-0 flex-1">
        <span className="block truncate text-sm font-medium">{identity.provider_name}</span>
        <span className="block truncate text-[13px] text-ink-3">
          {identity.email}, {identity.last_used_at ? 'used ' : 'connected '}
          <Ago at={identity.last_used_at ?? identity.created_at} />
        </span>
      </span>
      <Button
        variant="quiet"
        size="small"
        busy={busy}
        onClick={onRemove}
        aria-label={`Remove ${identity.provider_name}`}
      >
        Remove
      </Button>
    </li>
  )
}
