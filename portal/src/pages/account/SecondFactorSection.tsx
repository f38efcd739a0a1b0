import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, keys, secondFactorQuery } from '@/api'
import { Button } from '@/ui/Button'
import { LoadFailed, ProblemNotice } from '@/ui/Notice'
import { Badge } from '@/ui/StatusBadge'
import { Loading, Section, Skeleton } from '@/ui/Surface'
import { AuthenticatorDialog } from './AuthenticatorDialog'
import { RecoveryCodesDialog } from './RecoveryCodesDialog'

export function SecondFactorSection() {
  const queries = useQueryClient()
  const found = useQuery(secondFactorQuery)
  const [adding, setAdding] = useState(false)
  const refresh = () => void queries.invalidateQueries({ queryKey: keys.secondFactor })
  const renewal = useMutation({ mutationFn: api.renewRecoveryCodes, onSuccess: refresh })
  const removal = useMutation({ mutationFn: api.removeTotp, onSuccess: refresh })
  const isOn = found.data?.totp ?? false
  return (
    <Section
      title="Second factor"
      description="A code of your authenticator app, besides the password."
      aside={found.data && (isOn ? <Badge tone="good">On</Badge> : <Badge tone="plain">Off</Badge>)}
    >
      {found.isPending && (
        <Loading label="Loading the second factor">
          <Skeleton className="h-9 w-48" />
        </Loading>
      )}
      {found.error && <LoadFailed what="the second factor" error={found.error} retry={() => void found.refetch()} />}
      {found.data && !isOn && <Button onClick={() => setAdding(true)}>Add an authenticator</Button>}
      {found.data && isOn && (
        <>
          <p className="text-sm text-ink-2">
            {found.data.recovery_codes_left === 1
              ? 'One recovery code is left'
              : `${found.data.recovery_codes_left} recovery codes are left`}
            . Each works once, when the authenticator is not at hand.
          </p>
          <div className="mt-4 flex flex-wrap gap-2">
            <Button variant="secondary" busy={renewal.isPending} onClick={() => renewal.mutate()}>
              New recovery codes
            </Button>
            <Button variant="quiet" busy={removal.isPending} onClick={() => removal.mutate()}>
              Remove authenticator
            </Button>
          </div>
        </>
      )}
      {(renewal.error ?? removal.error) && (
        <div className="mt-4">
          <ProblemNotice error={renewal.error ?? removal.error} />
        </div>
      )}
      <AuthenticatorDialog open={adding} onClose={() => setAdding(false)} />
      <RecoveryCodesDialog codes={renewal.data?.codes ?? null} onClose={() => renewal.reset()} />
    </Section>
  )
}
