import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { quotaRequestsQuery, type OpenRequest } from '@/api'
import { count } from '@/format/quantity'
import { Button } from '@/ui/Button'
import { Section } from '@/ui/Surface'
import { Ago } from '@/ui/Time'
import { DeclineDialog, LimitDialog } from './QuotaDialogs'
import { OrganizationLink } from './OrganizationLink'

/** Requests for greater quotas that wait for an answer. Nothing where there are none. */
export function QuotaRequests() {
  const found = useQuery(quotaRequestsQuery)
  const [granting, setGranting] = useState<OpenRequest | null>(null)
  const [declining, setDeclining] = useState<OpenRequest | null>(null)
  if (!found.data?.length) return null
  return (
    <div className="mb-6">
      <Section title="Requests for more" description="Their owners get the answer by mail.">
        <ul aria-label="Requests for more" className="divide-y divide-line">
          {found.data.map((request) => (
            <li
              key={`${request.organization_id} ${request.code}`}
              className="flex flex-wrap items-center gap-x-6 gap-y-2 py-3 first:pt-0 last:pb-0"
            >
              <div className="min-w-0 flex-1 text-sm">
                <p>
                  <OrganizationLink id={request.organization_id} name={request.organization_name} /> wants{' '}
                  <code className="font-mono text-[13px]">{request.code}</code> of{' '}
                  <span className="nums font-medium">{count(request.wanted)}</span>
                </p>
                <p className="mt-0.5 text-[13px] break-words text-ink-3">
                  {request.reason} — {request.asked_by}, <Ago at={request.created_at} />
                </p>
              </div>
              <div className="flex gap-2">
                <Button variant="secondary" size="small" onClick={() => setGranting(request)}>
                  Set
                </Button>
                <Button variant="quiet" size="small" onClick={() => setDeclining(request)}>
                  Decline
                </Button>
              </div>
            </li>
          ))}
        </ul>
      </Section>
      {granting && (
        <LimitDialog
          organizationId={granting.organization_id}
          code={granting.code}
          limit={granting.wanted}
          onClose={() => setGranting(null)}
        />
      )}
      {declining && <DeclineDialog request={declining} onClose={() => setDeclining(null)} />}
    </div>
  )
}
