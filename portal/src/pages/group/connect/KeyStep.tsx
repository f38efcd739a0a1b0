import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { KeyRound } from 'lucide-react'
import { api, apiKeysQuery, keys } from '@/api'
import { useMay } from '@/session'
import { Button } from '@/ui/Button'
import { ProblemNotice } from '@/ui/Notice'
import { SecretOnce } from '@/ui/SecretOnce'
import { Card } from '@/ui/Surface'
import { scopesOf } from '../../settings/scopes'

interface Props {
  projectId: string
  /** Names the key, so that one click is enough and the key is recognisable later. */
  groupName: string
  secret: string | null
  onSecret: (secret: string) => void
}

const NAME_LENGTH_MAX = 100

export function KeyStep({ projectId, groupName, secret, onSecret }: Props) {
  const queries = useQueryClient()
  const [mayMake, maySee] = [useMay('administer'), useMay('team')]
  const existing = useQuery({ ...apiKeysQuery(projectId), enabled: maySee })
  const creation = useMutation({
    mutationFn: () =>
      api.createKey({
        owner: projectId,
        name: `${groupName} client`.slice(0, NAME_LENGTH_MAX),
        // A name with an asterisk at its end would be read as the begin of names.
        scopes: scopesOf(['append', 'read'], groupName.endsWith('*') ? [] : [groupName]),
      }),
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
        {mayMake
          ? 'This key lets a program append to this group and read it, and nothing else.'
          : 'Owners and admins of the organization make API keys. Ask one of them for a key of this group.'}
        {known > 0 && (
          <>
            {' '}
            The project has{' '}
            <Link
              to="/projects/$projectId/keys"
              params={{ projectId }}
              className="font-medium text-accent-text underline underline-offset-4"
            >
              {known === 1 ? 'one key' : `${known} keys`}
            </Link>{' '}
            already.
          </>
        )}
      </p>
      {creation.error && (
        <div className="mt-4">
          <ProblemNotice error={creation.error} />
        </div>
      )}
      {mayMake && (
        <Button
          className="mt-4"
          variant={known > 0 ? 'secondary' : 'primary'}
          icon={<KeyRound aria-hidden className="size-4" />}
          busy={creation.isPending}
          onClick={() => creation.mutate()}
        >
          Make an API key
        </Button>
      )}
    </Card>
  )
}
