/** The contract's generated types, by the portal's names. Only the live stream's type is written here. */
export type {
  Amounts,
  AuditEvent,
  ChangedWebhook,
  CreatedWebhook,
  Delivery,
  EventType,
  Capacity as FleetCapacity,
  JoinToken,
  KnownJoinToken,
  Lent,
  NewIncident,
  NewJoinToken,
  NewUpdate,
  OperatorEvent,
  Server,
  Tenant,
  Budget,
  BudgetAlert,
  Checkout,
  ClauseReport as Clause,
  Commitment,
  Commitments,
  Confirmation,
  CreatedKey,
  Group,
  GroupEvent,
  GroupPartitions,
  GroupSettings,
  GuaranteedGroup,
  GuaranteeQuote,
  GuaranteeTerms,
  Incident as StatusIncident,
  Invoice,
  InvoiceHead,
  InvoiceLine,
  InvoiceTax,
  Invitation,
  Invited,
  Key as ApiKey,
  LocalPolicy,
  Admission,
  Correction,
  FoundInvoice,
  Glance,
  HostedReplica,
  Guaranteed,
  MovingGroup,
  Pressure,
  RateChange,
  LogEntry,
  LogPage,
  Login,
  Me,
  Member,
  Membership,
  Metrics,
  MetricsMinute,
  NewBudget,
  NewCommitment,
  NewGroup,
  NewInvitation,
  NewKey,
  NewCorrection,
  NewPaymentEntry,
  NewWebhook,
  OpenRequest,
  PriceListed,
  ObservedSla,
  Organization,
  OrganizationStanding,
  Payment,
  PaymentEntry,
  PlacedRelocation as Relocation,
  PlacedReplica as Replica,
  GroupCosts,
  OperationCost,
  PlacedPartition,
  Placement,
  Price,
  Problem,
  Project,
  ProjectGuarantee,
  ProjectSpend,
  Quota,
  QuotaRequest,
  QuoteAnswer as Quote,
  QuoteRequest as Sla,
  Refusal,
  Reminder,
  Resize,
  ReplicaDemand,
  RotatedKey,
  Rotation,
  SecondFactor,
  Acceptance,
  Identity,
  IdentityErrand,
  IdentityProvider,
  Passkey,
  ProviderAnswer,
  ProviderLogin,
  ProviderLoginOutcome,
  Session,
  SlaIncident as Incident,
  SlaMinute as BadMinute,
  SlaPromise,
  SlaReport,
  Spend,
  SpendDay,
  SpendDays,
  Status as ServiceStatus,
  StatusComponent,
  StatusDay,
  StatusRegion,
  User,
  Webhook,
} from './generated/types.gen'

export type Role = import('./generated/types.gen').Member['role']

/** A key of a project, or of the organization. */
export type AnyKey = import('./generated/types.gen').Key | import('./generated/types.gen').OrganizationKey

/** The begin of a page of a log. */
export type EntriesPlace = NonNullable<import('./generated/types.gen').ListEntriesData['query']> & {
  partition: number
}

/** A problem of the service, or the portal's own for the lack of a usable answer. */
export type AnyProblem = Omit<import('./generated/types.gen').Problem, 'code'> & { code: string }

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
