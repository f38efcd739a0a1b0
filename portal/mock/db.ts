import type { ApiKey, Group, GroupEvent, Invoice, ObservedSla, Organization, Project, Sla, User } from '@/api'
import { seed } from './seed'
import type { Traffic } from './traffic'

/** Everything the mock service knows. Plain data, so that it survives a reload in the tab's session storage. */
export interface MockGroup {
  group: Group
  traffic: Traffic | null
  /** Server ids in chain order, with those that are dead; learners are joining. */
  chain: { server_id: number; alive: boolean }[]
  learners: number[]
  events: GroupEvent[]
  /** Index of the SLA story told for it: 0 all met, 1 a missed clause. */
  story: number
}
export interface MockDb {
  session: { user_id: string; csrf_token: string } | null
  users: (User & { password: string })[]
  organization: Organization
  projects: Project[]
  keys: ApiKey[]
  groups: MockGroup[]
  invoices: Invoice[]
  next: number
}

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

export function uuid(n: number): string {
  return `01990000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`
}

export function withDefaults(sla: Sla): ObservedSla {
  return {
    ...sla,
    min_replicas: sla.min_replicas ?? null,
    region: sla.region ?? 'local',
    retention_bytes: sla.retention_bytes ?? 256 * 2 ** 20,
    retention_age_s: sla.retention_age_s ?? null,
  }
}
