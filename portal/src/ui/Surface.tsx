import type { ReactNode } from 'react'

/** The white sheet that content lies on. */
export function Card({ className, children }: { className?: string; children: ReactNode }) {
  return <div className={`rounded-2xl border border-line bg-surface ${className ?? 'p-5 sm:p-6'}`}>{children}</div>
}

interface SectionProps {
  title: ReactNode
  description?: ReactNode
  aside?: ReactNode
  children: ReactNode
  className?: string
}

/** A card with a heading. */
export function Section({ title, description, aside, children, className }: SectionProps) {
  return (
    <section className={`rounded-2xl border border-line bg-surface ${className ?? ''}`}>
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-2 px-5 pt-5 sm:px-6">
        <div>
          <h2 className="text-[15px] font-semibold">{title}</h2>
          {description && <p className="mt-0.5 max-w-prose text-[13px] text-ink-3">{description}</p>}
        </div>
        {aside}
      </div>
      <div className="px-5 pt-4 pb-5 sm:px-6 sm:pb-6">{children}</div>
    </section>
  )
}

/** A heading above something that is a card itself, such as a table. */
export function Titled({ title, description, children }: { title: string; description?: string; children: ReactNode }) {
  return (
    <section>
      <h2 className="text-[15px] font-semibold">{title}</h2>
      {description && <p className="mt-0.5 max-w-prose text-[13px] text-ink-3">{description}</p>}
      <div className="mt-3">{children}</div>
    </section>
  )
}

interface PageHeaderProps {
  title: ReactNode
  description?: ReactNode
  actions?: ReactNode
}

export function PageHeader({ title, description, actions }: PageHeaderProps) {
  return (
    <div className="mb-7 flex flex-wrap items-start justify-between gap-x-8 gap-y-4">
      <div className="min-w-0">
        <h1 className="text-[26px] leading-tight font-semibold">{title}</h1>
        {description && <p className="mt-1.5 max-w-prose text-sm text-ink-2">{description}</p>}
      </div>
      {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
    </div>
  )
}

/** The content of an empty page: its purpose, and the first step. */
export function EmptyState({
  title,
  children,
  action,
  picture,
}: {
  title: string
  children: ReactNode
  action?: ReactNode
  picture?: ReactNode
}) {
  return (
    <div className="rounded-2xl border border-dashed border-line-strong px-6 py-14 text-center">
      {picture && <div className="mb-5 flex justify-center text-ink-3">{picture}</div>}
      <h2 className="text-lg font-semibold">{title}</h2>
      <div className="mx-auto mt-2 max-w-md text-sm leading-relaxed text-ink-2">{children}</div>
      {action && <div className="mt-6 flex justify-center">{action}</div>}
    </div>
  )
}

/** Grey shapes in the size of the awaited content, so that nothing moves when it arrives. */
export function Skeleton({ className }: { className?: string }) {
  return (
    <div
      aria-hidden
      className={`animate-[breathe_1.6s_ease-in-out_infinite] rounded-md bg-line ${className ?? 'h-4 w-full'}`}
    />
  )
}

export function Loading({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div role="status" aria-label={label}>
      {children}
    </div>
  )
}

export function Figure({ label, children, note }: { label: string; children: ReactNode; note?: ReactNode }) {
  return (
    <div>
      <dt className="text-[13px] text-ink-3">{label}</dt>
      <dd className="nums mt-1 text-xl font-semibold tracking-tight">{children}</dd>
      {note && <dd className="mt-0.5 text-[13px] text-ink-3">{note}</dd>}
    </div>
  )
}
