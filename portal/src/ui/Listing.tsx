import type { InfiniteData, UseInfiniteQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Button } from './Button'
import { LoadFailed } from './Notice'
import { Loading, Skeleton } from './Surface'

interface Props<T> {
  /** The list's name in sentences, as in "the audit log". */
  what: string
  query: UseInfiniteQueryResult<InfiniteData<{ items: T[] }>>
  empty: ReactNode
  more: string
  children: (items: T[]) => ReactNode
}

/** A list of pages: while it loads, when it cannot be read, when it is empty, and with a way to the next page. */
export function Listing<T>({ what, query, empty, more, children }: Props<T>) {
  const items = query.data?.pages.flatMap((page) => page.items) ?? []
  if (query.isPending)
    return (
      <Loading label={`Loading ${what}`}>
        <Skeleton className="h-64 w-full rounded-2xl" />
      </Loading>
    )
  if (query.error && !query.data)
    return <LoadFailed what={what} error={query.error} retry={() => void query.refetch()} />
  if (items.length === 0) return empty
  return (
    <>
      {children(items)}
      {query.hasNextPage && (
        <div className="mt-4 flex justify-center">
          <Button variant="secondary" busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            {more}
          </Button>
        </div>
      )}
    </>
  )
}
