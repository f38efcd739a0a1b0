import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { buttonClass } from '@/ui/Button'
import { PageHeader } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { GUIDES } from './guides'

const STEPS: [string, ReactNode][] = [
  [
    'Make a group',
    'Say its durability, replicas, request size and rate. The price, and whether the fleet can promise it, appear as you type.',
  ],
  ['Make an API key', 'By default it may append and read. It is shown once.'],
  [
    'Append',
    'The group’s “Connect” page has the lines of code with its id, for Python, JavaScript, curl and Terraform.',
  ],
  ['Look', '“Log” shows the entries, “Overview” the rate and latency as they are now.'],
  ['Hold us to it', '“SLA” shows each minute. When a clause is missed, the credit comes by itself.'],
]

/** The begin of the documentation: five steps, and the guides. */
export function DocsPage() {
  usePageTitle('Documentation')
  return (
    <>
      <PageHeader
        title="Get started"
        description="From an account to the first committed entry in about three minutes."
      />
      <ol className="max-w-2xl space-y-5">
        {STEPS.map(([head, text], index) => (
          <li key={head} className="flex gap-4">
            <span
              aria-hidden
              className="nums mt-0.5 flex size-6 shrink-0 items-center justify-center rounded-full bg-accent-soft text-[13px] font-medium text-accent-text"
            >
              {index + 1}
            </span>
            <span>
              <span className="block text-sm font-medium">{head}</span>
              <span className="mt-0.5 block text-sm leading-relaxed text-ink-2">{text}</span>
            </span>
          </li>
        ))}
      </ol>
      <div className="mt-8 flex flex-wrap gap-2">
        <Link to="/" className={buttonClass()}>
          Go to your groups
        </Link>
        <Link to="/docs/api" className={buttonClass('secondary')}>
          API reference
        </Link>
      </div>
      <h2 className="mt-12 mb-4 text-lg font-semibold">Guides</h2>
      <ul className="grid gap-4 sm:grid-cols-2 xl:grid-cols-3">
        {GUIDES.map(({ slug, title, lead }) => (
          <li
            key={slug}
            className="relative rounded-2xl border border-line bg-surface p-5 transition-colors hover:border-line-strong"
          >
            <Link
              to="/docs/$guide"
              params={{ guide: slug }}
              className="text-[15px] font-semibold after:absolute after:inset-0 after:rounded-2xl"
            >
              {title}
            </Link>
            <p className="mt-1 text-sm text-ink-2">{lead}</p>
          </li>
        ))}
      </ul>
    </>
  )
}
