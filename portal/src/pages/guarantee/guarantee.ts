import type { GuaranteedGroup, GuaranteeTerms, LocalPolicy, ProjectGuarantee } from '@/api'
import { count } from '@/format/quantity'

export type PolicyName = NonNullable<LocalPolicy['name']>

export const POLICIES: { name: PolicyName; label: string; hint: string; weight: string }[] = [
  {
    name: 'drf',
    label: 'Fair shares',
    hint: 'Groups that want more have equal shares, in the proportion of their weights.',
    weight: 'Weight',
  },
  {
    name: 'hierarchical_drf',
    label: 'Fair shares by class',
    hint: 'Classes have equal shares, and the groups of each divide theirs.',
    weight: 'Weight',
  },
  {
    name: 'first_fit',
    label: 'By rank',
    hint: 'The group of the first rank has all that it wants, then the next one.',
    weight: 'Rank',
  },
  {
    name: 'maximum_revenue',
    label: 'By worth',
    hint: 'Groups whose tokens are worth more come first.',
    weight: 'Worth',
  },
]

/** Appends/s of the group's declared size that so many tokens/s buy. */
export function appendsOf(tokens: number, group: GuaranteedGroup): number {
  return Math.floor(tokens / group.tokens_per_append)
}

/** Tokens/s that groups have of the shared ones now. */
export function inUse(guarantee: ProjectGuarantee): number {
  const used = guarantee.groups.map(
    (group) => Math.min(group.share_per_s ?? 0, group.wanted_per_s ?? 0) * group.tokens_per_append,
  )
  return Math.min(guarantee.shared_tokens_per_s, Math.round(used.reduce((sum, each) => sum + each, 0)))
}

/** Whether the group wants more than its share. */
export function isBounded(group: GuaranteedGroup): boolean {
  return group.wanted_per_s !== null && group.share_per_s !== null && group.wanted_per_s > group.share_per_s
}

/** A whole number above 0 as people type it, as in "100,000"; null: it is none. */
export function wholeOf(text: string): number | null {
  const digits = text.replaceAll(/[\s,_]/g, '')
  return /^\d{1,13}$/.test(digits) && Number(digits) > 0 ? Number(digits) : null
}

/** Entered values of each group: its weight, rank or worth, and its class. */
export type Entries = Record<string, { weight: string; name: string }>

export function entriesOf({ groups, policy }: ProjectGuarantee): Entries {
  const named = policy.groups ?? []
  return Object.fromEntries(
    groups.map(({ group_id }) => {
      const place = named.findIndex((each) => each.group_id === group_id)
      const own = named[place]
      const weight = policy.name === 'first_fit' ? (place < 0 ? '' : place + 1) : (own?.weight ?? 1)
      return [group_id, { weight: String(weight), name: own?.class ?? '' }]
    }),
  )
}

/** Entries for another policy: ranks and weights mean different things, so neither becomes the other. */
export function entriesFor(name: PolicyName, before: PolicyName, entries: Entries): Entries {
  if ((name === 'first_fit') === (before === 'first_fit')) return entries
  const weight = name === 'first_fit' ? '' : '1'
  return Object.fromEntries(Object.entries(entries).map(([group_id, each]) => [group_id, { ...each, weight }]))
}

export function policyOf(name: PolicyName, entries: Entries): LocalPolicy {
  const all = Object.entries(entries)
  if (name === 'first_fit') {
    const ranked = all.filter(([, { weight }]) => wholeOf(weight) !== null)
    const order = ranked.toSorted(([, left], [, right]) => Number(left.weight) - Number(right.weight))
    return { name, groups: order.map(([group_id]) => ({ group_id })) }
  }
  const others = all.filter(([, each]) => each.weight !== '1' || (name === 'hierarchical_drf' && each.name !== ''))
  return {
    name,
    groups: others.map(([group_id, each]) => ({
      group_id,
      weight: wholeOf(each.weight) ?? 1,
      ...(name === 'hierarchical_drf' && each.name !== '' ? { class: each.name } : {}),
    })),
  }
}

/** The terms that are entered; null while a number is none. */
export function termsOf(
  tokens: string,
  name: PolicyName,
  entries: Entries,
  most: number | null,
): GuaranteeTerms | null {
  const shared = wholeOf(tokens)
  const weights = Object.values(entries).map(({ weight }) => weight)
  const isOptional = name === 'first_fit'
  if (shared === null || weights.some((weight) => wholeOf(weight) === null && !(isOptional && weight === '')))
    return null
  return { shared_tokens_per_s: shared, max_tokens_per_s: most, policy: policyOf(name, entries) }
}

export function tokensText(tokens: number): string {
  return `${count(tokens)} tokens/s`
}
