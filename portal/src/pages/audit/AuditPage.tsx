import { useInfiniteQuery } from '@tanstack/react-query'
import { Download, ScrollText } from 'lucide-react'
import { auditQuery } from '@/api'
import { Button, buttonClass } from '@/ui/Button'
import { LoadFailed } from '@/ui/Notice'
import { Card, EmptyState, Loading, PageHeader, Skeleton } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { Entry } from './Entry'

export function AuditPage() {
  usePageTitle('Audit log')
  const found = useInfiniteQuery(auditQuery)
  const events = found.data?.pages.flatMap((page) => page.items) ?? []
  return (
    <>
      <PageHeader
        title="Audit log"
        description="Each change in your organization: by whom, from where, and with what key. Nobody can rewrite it."
        actions={
          <a href="/v1/audit/export" download className={buttonClass('secondary')}>
            <Download aria-hidden className="size-4" />
            Export
          </a>
        }
      />
      {found.isPending && (
        <Loading label="Loading the audit log">
          <Skeleton className="h-72 w-full rounded-2xl" />
        </Loading>
      )}
      {found.error && !found.data && (
        <LoadFailed what="the audit log" error={found.error} retry={() => void found.refetch()} />
      )}
      {found.data && events.length === 0 && (
        <EmptyState title="No changes yet" picture={<ScrollText aria-hidden className="size-8" />}>
          Changes appear here as they are made.
        </EmptyState>
      )}
      {events.length > 0 && (
        <Card className="overflow-hidden">
          <ol className="divide-y divide-line">
            {events.map((event) => (
              <Entry key={event.seq} event={event} />
            ))}
          </ol>
        </Card>
      )}
      {found.hasNextPage && (
        <div className="mt-4 flex justify-center">
          <Button variant="secondary" busy={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>
            Earlier changes
          </Button>
        </div>
      )}
    </>
  )
}
