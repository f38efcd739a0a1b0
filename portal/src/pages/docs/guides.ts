/** The guides of the product: files of the repository, which are their one source. */
export interface Guide {
  slug: string
  title: string
  lead: string
  /** From the repository's root. */
  path: string
}

export const GUIDES: Guide[] = [
  {
    slug: 'python',
    title: 'Python',
    lead: 'Append, read and follow a log; outcomes, batches, partitions, errors.',
    path: 'sdk/python/README.md',
  },
  {
    slug: 'javascript',
    title: 'JavaScript and TypeScript',
    lead: 'The same, for Node.js.',
    path: 'sdk/js/README.md',
  },
  {
    slug: 'terraform',
    title: 'Terraform',
    lead: 'Groups, keys, budgets and webhooks as code.',
    path: 'docs/reference/terraform.md',
  },
  {
    slug: 'sla',
    title: 'The SLA',
    lead: 'Its clauses, how each minute is judged, and the credits.',
    path: 'docs/reference/sla.md',
  },
  {
    slug: 'api-keys',
    title: 'API keys',
    lead: 'Scopes, expiry, rotation, and how leaked keys are found.',
    path: 'docs/reference/api-keys.md',
  },
  {
    slug: 'webhooks',
    title: 'Webhooks',
    lead: 'Receiving, verifying and replaying events.',
    path: 'docs/reference/webhooks.md',
  },
  { slug: 'events', title: 'Events', lead: 'Every type of event with its fields.', path: 'docs/reference/events.md' },
  { slug: 'glossary', title: 'Glossary', lead: 'Each term, with one meaning.', path: 'docs/glossary.md' },
]

const TEXTS = import.meta.glob<string>(
  [
    '../../../../sdk/python/README.md',
    '../../../../sdk/js/README.md',
    '../../../../docs/reference/{terraform,sla,api-keys,webhooks,events}.md',
    '../../../../docs/glossary.md',
  ],
  { query: '?raw', import: 'default' },
)

export function guideOf(slug: string): Guide | undefined {
  return GUIDES.find((guide) => guide.slug === slug)
}

export async function textOf({ path }: Guide): Promise<string> {
  const load = TEXTS[`../../../../${path}`]
  if (!load) throw new Error(`${path} is not among the guides' files`)
  // Some files say at their top by which program they were made.
  return (await load()).replace(/^(---\n[\s\S]*?\n---\n|<!--[\s\S]*?-->)\s*/, '')
}

/** A link within the repository, as an address of the portal. null: the portal has no page for it. */
export function addressOf(from: Guide, href: string): string | null {
  if (/^(https?:|mailto:|#)/.test(href)) return href
  const target = new URL(href, `http://repository/${from.path}`)
  const found = GUIDES.find(({ path }) => `/${path}` === target.pathname)
  return found ? `/docs/${found.slug}${target.hash}` : null
}
