import { CircleAlert, CircleCheck, Info, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import { problemOf, UNREACHABLE } from '@/api'
import { Button } from './Button'

type Tone = 'info' | 'good' | 'warn' | 'danger'
const TONES: Record<Tone, string> = {
  info: 'bg-info-soft text-info-text',
  good: 'bg-accent-soft text-accent-text',
  warn: 'bg-warn-soft text-warn-text',
  danger: 'bg-danger-soft text-danger-text',
}
const ICONS = { info: Info, good: CircleCheck, warn: TriangleAlert, danger: CircleAlert }

interface Props {
  tone: Tone
  title: ReactNode
  children?: ReactNode
  action?: ReactNode
  /** Announced at once. Use it for results of the reader's own action. */
  announce?: boolean
}

export function Notice({ tone, title, children, action, announce }: Props) {
  const Icon = ICONS[tone]
  return (
    <div role={announce ? 'alert' : undefined} className={`flex gap-3 rounded-xl p-4 text-sm ${TONES[tone]}`}>
      <Icon aria-hidden className="mt-0.5 size-4 shrink-0" />
      <div className="min-w-0 flex-1">
        <p className="font-medium">{title}</p>
        {children && <div className="mt-1 leading-relaxed text-ink-2">{children}</div>}
        {action && <div className="mt-3">{action}</div>}
      </div>
    </div>
  )
}

/** A failed action, beside its form. */
export function ProblemNotice({ error, action }: { error: unknown; action?: ReactNode }) {
  const problem = problemOf(error)
  return (
    <Notice tone="danger" title={problem.title} announce action={action}>
      <p>{problem.detail}</p>
      <RequestId id={problem.request_id} />
    </Notice>
  )
}

/** A page, or a part of one, that could not be loaded. */
export function LoadFailed({ what, error, retry }: { what: string; error: unknown; retry: () => void }) {
  const problem = problemOf(error)
  if (problem.code === 'not_found') {
    return (
      <div className="rounded-2xl border border-dashed border-line-strong px-6 py-14 text-center">
        <h2 className="text-lg font-semibold">Not found</h2>
        <p className="mx-auto mt-2 max-w-md text-sm text-ink-2">{problem.detail} It may have been deleted.</p>
      </div>
    )
  }
  return (
    <div role="alert" className="rounded-2xl border border-line bg-surface px-6 py-12 text-center">
      <CircleAlert aria-hidden className="mx-auto size-6 text-danger" />
      <h2 className="mt-3 text-base font-semibold">
        {problem.code === UNREACHABLE ? 'You seem to be offline' : `We could not load ${what}`}
      </h2>
      <p className="mx-auto mt-1 max-w-md text-sm text-ink-2">{problem.detail}</p>
      <RequestId id={problem.request_id} />
      <Button variant="secondary" size="small" className="mt-5" onClick={retry}>
        Try again
      </Button>
    </div>
  )
}

function RequestId({ id }: { id: string }) {
  if (!id) return null
  return (
    <p className="mt-2 text-xs text-ink-2">
      Request <code className="font-mono select-all">{id}</code>
    </p>
  )
}
