import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { isValidElement, type ReactNode } from 'react'
import Markdown, { type Components } from 'react-markdown'
import remarkGfm from 'remark-gfm'
import { NotFoundPage } from '@/pages/Fallbacks'
import { scrollable } from '@/ui/scrollable'
import { LoadFailed } from '@/ui/Notice'
import { Loading, Skeleton } from '@/ui/Surface'
import { usePageTitle } from '@/ui/title'
import { addressOf, guideOf, textOf, type Guide } from './guides'

const route = getRouteApi('/docs/$guide')

export function GuidePage() {
  const guide = guideOf(route.useParams().guide)
  return guide ? <Text key={guide.slug} guide={guide} /> : <NotFoundPage />
}

function Text({ guide }: { guide: Guide }) {
  usePageTitle(guide.title)
  const text = useQuery({ queryKey: ['guide', guide.slug], queryFn: () => textOf(guide), staleTime: Infinity })
  if (text.isPending)
    return (
      <Loading label="Loading the guide">
        <Skeleton className="h-96 w-full rounded-2xl" />
      </Loading>
    )
  if (text.error) return <LoadFailed what="this guide" error={text.error} retry={() => void text.refetch()} />
  return (
    <article className="guide max-w-3xl">
      <Markdown remarkPlugins={[remarkGfm]} components={componentsOf(guide)}>
        {text.data}
      </Markdown>
    </article>
  )
}

/** Headings get an address, links stay in the portal, and what is wide can be scrolled. */
function componentsOf(guide: Guide): Components {
  return {
    a: ({ href = '', children }) => {
      const address = addressOf(guide, href)
      if (address === null) return <span>{children}</span>
      if (address.startsWith('/')) return <Link to={address}>{children}</Link>
      return <a href={address}>{children}</a>
    },
    h2: ({ children }) => <h2 id={slugOf(children)}>{children}</h2>,
    h3: ({ children }) => <h3 id={slugOf(children)}>{children}</h3>,
    pre: ({ children }) => <pre {...scrollable('Code')}>{children}</pre>,
    table: ({ children }) => (
      <div {...scrollable('Table')} className="overflow-x-auto">
        <table>{children}</table>
      </div>
    ),
  }
}

/** As other readers of these files make them: "Rotate a key" → "rotate-a-key". */
function slugOf(children: ReactNode): string {
  return plain(children)
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s-]/gu, '')
    .trim()
    .replace(/\s+/g, '-')
}

function plain(node: ReactNode): string {
  if (typeof node === 'string' || typeof node === 'number') return String(node)
  if (Array.isArray(node)) return node.map(plain).join('')
  return isValidElement<{ children?: ReactNode }>(node) ? plain(node.props.children) : ''
}
