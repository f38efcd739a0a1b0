import { useMutation, useQuery } from '@tanstack/react-query'
import { LogIn } from 'lucide-react'
import { goToProvider, identityProvidersQuery, type Errand } from '@/api'
import { Button } from '@/ui/Button'
import { ProblemNotice } from '@/ui/Notice'

/** A button for each identity provider of the service; nothing without any. */
export function ProviderButtons({ verb, errand }: { verb: string; errand: () => Omit<Errand, 'provider'> }) {
  const found = useQuery(identityProvidersQuery)
  const leaving = useMutation({
    mutationFn: (provider: { id: string; name: string }) => goToProvider(provider, errand()),
  })
  if (!found.data?.length) return null
  return (
    <div className="space-y-3">
      {found.data.map((provider) => (
        <Button
          key={provider.id}
          variant="secondary"
          className="w-full"
          icon={<LogIn aria-hidden className="size-4" />}
          busy={leaving.isPending && leaving.variables.id === provider.id}
          onClick={() => leaving.mutate(provider)}
        >
          {verb} with {provider.name}
        </Button>
      ))}
      {leaving.error && <ProblemNotice error={leaving.error} />}
    </div>
  )
}
