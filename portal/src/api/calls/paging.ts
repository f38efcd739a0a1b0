/**
 * The calls of the contract as the portal uses them: each resolves with the answer's body or throws a
 * ProblemError. Only this folder uses the generated client.
 */
const PAGE_LIMIT = 200
/** Quotas keep every list far below this. The bound stops an endless chain of cursors. */
const PAGES_MAX = 50
export const EVENTS_LIMIT = 20
export const AUDIT_LIMIT = 50

export const throwOnError = true

interface Page<T> {
  items: T[]
  next_cursor: string | null
}

export async function everyPage<T>(
  read: (query: { limit: number; cursor?: string }) => Promise<Page<T>>,
): Promise<T[]> {
  const items: T[] = []
  let cursor: string | null = null
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const answer: Page<T> = await read({ limit: PAGE_LIMIT, ...(cursor === null ? {} : { cursor }) })
    items.push(...answer.items)
    cursor = answer.next_cursor
    if (cursor === null) break
  }
  return items
}
