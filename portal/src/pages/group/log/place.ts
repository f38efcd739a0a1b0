import type { EntriesPlace } from '@/api'

export const PAGE = 50

/** As in the page's address. Neither: the newest entries. */
export interface Search {
  offset?: number | undefined
  at?: string | undefined
  partition?: number | undefined
  view?: 'text' | 'json' | 'hex' | undefined
}

export function placeOf({ offset, at, partition = 0 }: Search): EntriesPlace {
  return {
    partition,
    limit: PAGE,
    ...(offset === undefined ? {} : { offset }),
    ...(at === undefined || offset !== undefined ? {} : { at }),
  }
}

/** A whole number from 0 on, as people write it: also 1,234. null: it is none. */
export function offsetOf(text: string): number | null {
  const digits = text.replace(/[\s,_']/g, '')
  return /^\d{1,15}$/.test(digits) ? Number(digits) : null
}

/** `YYYY-MM-DDTHH:MM` of the reader's zone, with or without seconds, as an instant. null: it is none. */
export function instantOf(local: string): string | null {
  const ms = Date.parse(local)
  return local === '' || Number.isNaN(ms) ? null : new Date(ms).toISOString()
}
