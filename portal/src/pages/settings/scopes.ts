/** The scopes of an API key: rights, on all groups or on some by name. */
export type Right = 'append' | 'read' | 'manage' | 'billing' | 'administer'

export const ORGANIZATION = null
/** The owner of keys: a project, by its id, or the organization. */
export type KeyOwner = string | typeof ORGANIZATION

interface About {
  right: Right
  label: string
  about: string
}

const OF_PROJECT: readonly About[] = [
  { right: 'append', label: 'Append', about: 'Write to the logs.' },
  { right: 'read', label: 'Read', about: 'Read and follow the logs.' },
  {
    right: 'manage',
    label: 'Manage',
    about: 'Create, resize and delete groups with their logs. For automation; no program that only appends needs it.',
  },
  { right: 'billing', label: 'Billing', about: 'Read the invoices of the organization.' },
]
const OF_ORGANIZATION: readonly About[] = [
  {
    right: 'administer',
    label: 'Administer',
    about: 'Create and delete projects, keys within its own rights, webhooks.',
  },
  ...OF_PROJECT,
]
const WITHOUT_GROUPS: readonly Right[] = ['billing', 'administer']

/** The rights that a key of this owner may have. */
export function rightsFor(owner: KeyOwner): readonly About[] {
  return owner === ORGANIZATION ? OF_ORGANIZATION : OF_PROJECT
}

/** As the service's own defaults. */
export function usualFor(owner: KeyOwner): readonly Right[] {
  return owner === ORGANIZATION ? ['administer', 'append', 'manage', 'read'] : ['append', 'read']
}

/** Names of groups, or begins of names with `*`, as a person lists them. */
export function namesIn(text: string): string[] {
  const names = text.split(/[\n,]/).map((name) => name.trim())
  return [...new Set(names.filter((name) => name !== ''))]
}

/** `names`: the groups on which it may do them; empty: all. Some rights are never about groups. */
export function scopesOf(rights: readonly Right[], names: readonly string[]): string[] {
  return rights.flatMap((right) =>
    WITHOUT_GROUPS.includes(right) || names.length === 0 ? [right] : names.map((name) => `${right}:${name}`),
  )
}

/** `append, read` or, of groups by name, `append, read: orders, pay-*`. A line for each set of rights. */
export function inWords(scopes: readonly string[]): string[] {
  const rightsOf = new Map<string, string[]>()
  for (const scope of scopes) {
    const [right = '', ...names] = scope.split(':')
    const groups = names.join(':')
    rightsOf.set(groups, [...(rightsOf.get(groups) ?? []), right])
  }
  const groupsOf = new Map<string, string[]>()
  for (const [groups, rights] of rightsOf) {
    const together = rights.join(', ')
    groupsOf.set(together, [...(groupsOf.get(together) ?? []), groups])
  }
  return [...groupsOf].flatMap(([rights, groups]) => {
    const named = groups.filter((group) => group !== '')
    return [...(groups.includes('') ? [rights] : []), ...(named.length > 0 ? [`${rights}: ${named.join(', ')}`] : [])]
  })
}
