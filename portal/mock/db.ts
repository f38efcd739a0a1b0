import { uuid, type MockDb } from './records'
import { seed } from './seed'

export const PROVISIONING_MS = 1_500
const STORAGE_KEY = 'quorate.mock'

let db: MockDb | null = null

export function database(): MockDb {
  db ??= restore() ?? seed(Date.now())
  return db
}

/** Call after every change. */
export function persist(): void {
  globalThis.sessionStorage?.setItem(STORAGE_KEY, JSON.stringify(db))
}

export function reset(): void {
  globalThis.sessionStorage?.removeItem(STORAGE_KEY)
  db = null
}

function restore(): MockDb | null {
  const stored = globalThis.sessionStorage?.getItem(STORAGE_KEY)
  return stored ? (JSON.parse(stored) as MockDb) : null
}

/** Ids shaped like the service's: UUIDs, in the order of creation. */
export function newId(): string {
  const of = database()
  of.next += 1
  return uuid(of.next)
}
