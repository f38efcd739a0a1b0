import type { Role } from '@/api'

/** As `docs/internals/api.md` has them. */
export const ROLES: readonly { role: Role; label: string; about: string }[] = [
  { role: 'owner', label: 'Owner', about: 'Everything, owners among the members too.' },
  { role: 'admin', label: 'Admin', about: 'Everything but owners and the organization as a whole.' },
  { role: 'developer', label: 'Developer', about: 'Groups and their entries. Sees keys and members.' },
  { role: 'billing', label: 'Billing', about: 'Invoices, spend and budgets. Sees groups, and no entries.' },
  { role: 'viewer', label: 'Viewer', about: 'Sees groups and reports, and no entries.' },
]
