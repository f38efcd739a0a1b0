import { useQuery } from '@tanstack/react-query'
import { useDeferredValue, useState } from 'react'
import { contractQuery } from '@/api'
import { TextField } from '@/ui/Field'
import { LoadFailed } from '@/ui/Notice'
import { Loading, PageHeader, Skeleton } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { CallCard } from './CallCard'
import { tagsOf, type Contract } from './contract'

/** The API, call by call, from the contract that this service serves. */
export function ReferencePage() {
  usePageTitle('API reference')
  const found = useQuery(contractQuery)
  const [search, setSearch] = useState('')
  return (
    <>
      <PageHeader
        title="API reference"
        description="Every call, as this service answers it. JSON in UTF-8; errors are problems (RFC 9457) with a code and the next step."
      />
      <div className="max-w-xl">
        <TextField
          label="Find a call"
          type="search"
          placeholder="A part of the path or of the description"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
          hint={
            <a href="/v1/openapi.json" className="underline decoration-line-strong underline-offset-4 hover:text-ink-2">
              The OpenAPI document
            </a>
          }
        />
      </div>
      {found.isPending && (
        <Loading label="Loading the reference">
          <Skeleton className="mt-8 h-96 w-full rounded-2xl" />
        </Loading>
      )}
      {found.error && <LoadFailed what="the reference" error={found.error} retry={() => void found.refetch()} />}
      {found.data && <Calls contract={found.data as Contract} search={search} />}
    </>
  )
}

function Calls({ contract, search }: { contract: Contract; search: string }) {
  const tags = tagsOf(contract, useDeferredValue(search))
  if (tags.length === 0) return <p className="mt-8 text-sm text-ink-3">No call has this in its path or description.</p>
  return tags.map(({ name, calls }) => (
    <section key={name} aria-labelledby={`tag-${name}`} className="mt-10">
      <h2 id={`tag-${name}`} className="mb-3 text-lg font-semibold first-letter:uppercase">
        {name}
      </h2>
      <div className="divide-y divide-line overflow-hidden rounded-2xl border border-line bg-surface">
        {calls.map((call) => (
          <CallCard key={call.operation.operationId} call={call} contract={contract} />
        ))}
      </div>
    </section>
  ))
}
