/** The contract's types, by the names the portal uses. Generated; only the live stream's are written here. */
export type {
  ClauseReport as Clause,
  CreatedKey,
  Group,
  GroupEvent,
  Invoice,
  InvoiceHead,
  InvoiceLine,
  Key as ApiKey,
  Me,
  Metrics,
  MetricsMinute,
  NewGroup,
  ObservedSla,
  Organization,
  PlacedReplica as Replica,
  Placement,
  Price,
  Problem,
  Project,
  Quota,
  QuoteAnswer as Quote,
  QuoteRequest as Sla,
  Refusal,
  ReplicaDemand,
  SlaIncident as Incident,
  SlaReport,
  User,
} from './generated'

/** A problem of the service, or one that the portal makes when there was no usable answer. */
export type AnyProblem = Omit<import('./generated').Problem, 'code'> & { code: string }

/** `event: sample` of GET /v1/groups/{id}/live; docs/internals/api.md has the stream. */
export interface LiveSample {
  at_ms: number
  append_per_s: number
  offered_per_s: number
  throttled_per_s: number
  p50_us: number | null
  p99_us: number | null
  committed_entries: number
  epoch: number
}
