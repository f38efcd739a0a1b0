import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api, invitationsQuery, keys } from '@/api'
import { word } from '@/format/words'
import { useMay } from '@/session'
import { Button } from '@/ui/Button'
import { ProblemNotice } from '@/ui/Notice'
import { Section } from '@/ui/Surface'
import { Ago } from '@/ui/Time'

/** Nothing while none waits. */
export function Invitations() {
  const queries = useQueryClient()
  const found = useQuery(invitationsQuery)
  const [mayAdminister, mayTouchOwners] = [useMay('administer'), useMay('own')]
  const withdrawal = useMutation({
    mutationFn: api.withdrawInvitation,
    onSuccess: () => queries.invalidateQueries({ queryKey: keys.invitations }),
  })
  if (!found.data?.length) return null
  return (
    <Section title="Invitations" description="They wait for an answer." className="mt-5">
      {withdrawal.error && <ProblemNotice error={withdrawal.error} />}
      <ul className="divide-y divide-line">
        {found.data.map((invitation) => (
          <li key={invitation.id} className="flex items-center gap-4 py-3 first:pt-0 last:pb-0">
            <span className="min-w-0 flex-1">
              <span className="block truncate text-sm font-medium">{invitation.email}</span>
              <span className="block text-[13px] text-ink-3">
                {word(invitation.role)} · ends <Ago at={invitation.expires_at} />
              </span>
            </span>
            {mayAdminister && (invitation.role !== 'owner' || mayTouchOwners) && (
              <Button
                variant="quiet"
                size="small"
                aria-label={`Withdraw the invitation of ${invitation.email}`}
                busy={withdrawal.isPending && withdrawal.variables === invitation.id}
                onClick={() => withdrawal.mutate(invitation.id)}
              >
                Withdraw
              </Button>
            )}
          </li>
        ))}
      </ul>
    </Section>
  )
}
