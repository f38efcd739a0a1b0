import type {
  Correction,
  Identity,
  Passkey,
  AnyKey,
  ApiKey,
  Budget,
  Commitment,
  Delivery,
  Group,
  GroupEvent,
  GuaranteeTerms,
  Invitation,
  Invoice,
  KnownJoinToken,
  MovingGroup,
  Member,
  ObservedSla,
  OperatorEvent,
  Organization,
  PaymentEntry,
  Project,
  SecondFactor,
  Server,
  Session,
  Sla,
  StatusIncident,
  Tenant,
  User,
  Relocation,
  Webhook,
} from '@/api'
import type { Traffic } from './traffic'

/** The mock service's state. It is plain data, so that the tab's session storage keeps it over a reload. */
export interface MockGroup {
  group: Group
  traffic: Traffic | null
  /** Server ids in chain order, with dead ones. */
  chain: { server_id: number; alive: boolean }[]
  learners: number[]
  relocation?: Relocation
  events: GroupEvent[]
  /** Index of its SLA story: 0 all clauses met, 1 a missed clause. */
  story: number
}
export interface MockDb {
  session: { user_id: string; csrf_token: string } | null
  users: (User & { password: string })[]
  members: Member[]
  invitations: Invitation[]
  sessions: Session[]
  passkeys: Passkey[]
  identities: Identity[]
  secondFactor: SecondFactor
  organization: Organization
  closing_at: string | null
  projects: Project[]
  keys: ApiKey[]
  groups: MockGroup[]
  invoices: Invoice[]
  /** By invoice. */
  payments: Record<string, PaymentEntry[]>
  budgets: Budget[]
  commitments: Commitment[]
  webhooks: Webhook[]
  /** By webhook, newest first. */
  deliveries: Record<string, Delivery[]>
  /** By project. */
  guarantees: Record<string, { terms: GuaranteeTerms | null; revision: number; since: string }>
  servers: Server[]
  joinTokens: KnownJoinToken[]
  organizationKeys: AnyKey[]
  moves: MovingGroup[]
  tenants: Tenant[]
  /** Set by operators, and asked for; by quota. */
  quotaLimits: Record<string, number>
  quotaRequests: Record<string, number>
  corrections: Correction[]
  incidents: StatusIncident[]
  operatorEvents: OperatorEvent[]
  next: number
}

/** Ids shaped like the service's: UUIDs, in the order of their numbers. */
export function uuid(n: number): string {
  return `01990000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`
}

export function withDefaults(sla: Sla): ObservedSla {
  return {
    ...sla,
    min_replicas: sla.min_replicas ?? null,
    region: sla.region ?? 'local',
    read_rate_per_s: sla.read_rate_per_s ?? 0,
    retention_bytes: sla.retention_bytes ?? 256 * 2 ** 20,
    retention_age_s: sla.retention_age_s ?? null,
    latency: sla.latency ?? 'standard',
  }
}
