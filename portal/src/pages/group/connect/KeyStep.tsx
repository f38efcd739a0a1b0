import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { KeyRound } from 'lucide-react'
import { api, apiKeysQuery, keys } from '@/api'
import { Button } from '@/ui/Button'
import { ProblemNotice } from '@/ui/Notice'
import { SecretOnce } from '@/ui/SecretOnce'
import { Card } from '@/ui/Surface'

interface Props {
  projectId: string
  /** A default name for the key, so that one click is enough and the key is recognisable later. */
  suggestion: string
  secret: string | null
  onSecret: (secret: string) => void
}

const NAME_LENGTH_MAX = 100

export function KeyStep({ projectId, suggestion, secret, onSecret }: Props) {
  const queries = useQueryClient()
  const existing = useQuery(apiKeysQuery(projectId))
  const creation = useMutation({
    mutationFn: () => api.createKey(projectId, suggestion.slice(0, NAME_LENGTH_MAX)),
    onSuccess: (key) => {
      onSecret(key.secret)
      void queries.invalidateQueries({ queryKey: keys.apiKeys(projectId) })
    },
  })
  if (secret) return <SecretOnce secret={secret} note="It is filled in below, too." />
  const known = existing.data?.length ?? 0
  return (
    <Card>
      <p className="text-sm text-ink-2">
        A key lets a program append to and read the groups of this project.
        {known > 0 && (
          <>
            {' '}
            The project has {known === 1 ? 'one key' : `${known} keys`} already; use{' '}
            <Link
              to="/projects/$projectId/keys"
              params={{ projectId }}
              className="font-medium text-accent-text underline underline-offset-4"
            >
              one that you kept
            </Link>
            , or make another.
          </>
        )}
      </p>
      {creation.error && (
        <div className="mt-4">
          <ProblemNotice error={creation.error} />
        </div>
      )}
      <Button
        className="mt-4"
        variant={known > 0 ? 'secondary' : 'primary'}
        icon={<KeyRound aria-hidden className="size-4" />}
        busy={creation.isPending}
        onClick={() => creation.mutate()}
      >
        Make an API key
      </Button>
    </Card>
  )
}
