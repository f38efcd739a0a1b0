import { getRouteApi } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { Steps } from '@/pages/create/Steps'
import { usePageTitle } from '@/ui/title'
import { useGroup } from '../GroupPage'
import { FirstAppend } from './FirstAppend'
import { KeyStep } from './KeyStep'
import { SnippetStep } from './SnippetStep'
import { KEY_PLACEHOLDER } from './snippets'

const route = getRouteApi('/app/projects/$projectId/groups/$groupId/connect')

export function ConnectTab() {
  const group = useGroup()
  usePageTitle('Connect', group.name)
  const { welcome } = route.useSearch()
  // The secret is in this page alone. The service stores only a hash of it.
  const [secret, setSecret] = useState<string | null>(null)
  const place = {
    apiUrl: window.location.origin,
    apiKey: secret ?? KEY_PLACEHOLDER,
    groupId: group.id,
    isDivided: (group.partitions ?? 1) > 1,
  }
  return (
    <div className="max-w-3xl">
      {welcome && <Steps current={2} />}
      <ol className="space-y-8">
        <Step number={1} title="Make an API key">
          <KeyStep projectId={group.project_id} groupName={group.name} secret={secret} onSecret={setSecret} />
        </Step>
        <Step number={2} title="Append">
          <SnippetStep place={place} />
        </Step>
        <Step number={3} title="See it arrive">
          <FirstAppend projectId={group.project_id} groupId={group.id} isNew={welcome ?? false} />
        </Step>
      </ol>
    </div>
  )
}

function Step({ number, title, children }: { number: number; title: string; children: ReactNode }) {
  return (
    <li className="grid grid-cols-[minmax(0,1fr)] gap-x-5 gap-y-3 sm:grid-cols-[2rem_minmax(0,1fr)]">
      <span
        aria-hidden
        className="nums hidden size-8 items-center justify-center rounded-full border border-line-strong text-sm text-ink-2 sm:flex"
      >
        {number}
      </span>
      <section>
        <h2 className="pb-3 text-[15px] leading-8 font-semibold">{title}</h2>
        {children}
      </section>
    </li>
  )
}
