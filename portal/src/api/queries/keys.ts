/**
 * The pages' queries, and how often each is repeated. Every key of a group begins with `['group', id]`, so that one
 * invalidation reaches all of the group's data.
 */
export const keys = {
  me: ['me'] as const,
  groups: (projectId: string) => ['groups', projectId] as const,
  group: (groupId: string) => ['group', groupId] as const,
  guarantee: (projectId: string) => ['guarantee', projectId] as const,
  apiKeys: (owner: string | null) => ['keys', owner] as const,
  quotas: ['quotas'] as const,
  invoices: ['invoices'] as const,
  spend: ['spend'] as const,
  budgets: ['budgets'] as const,
  commitments: ['commitments'] as const,
  sessions: ['sessions'] as const,
  secondFactor: ['second-factor'] as const,
  passkeys: ['passkeys'] as const,
  identities: ['identities'] as const,
  identityProviders: ['identity-providers'] as const,
  members: ['members'] as const,
  invitations: ['invitations'] as const,
  audit: ['audit'] as const,
  webhooks: ['webhooks'] as const,
  organization: ['organization'] as const,
  operator: ['operator'] as const,
}

export const SETTLED_MS = 15_000
/** Groups under placement, repair or deletion are read more often. */
export const UNSETTLED_MS = 1_500
/** Shares of a guarantee change each quarter of a second. */
export const SHARES_MS = 2_000
export const UNSETTLED = new Set<string>(['provisioning', 'deleting', 'degraded', 'paused'])
