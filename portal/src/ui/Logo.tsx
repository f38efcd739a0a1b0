/** Three replicas in a ring. */
export function Mark({ className }: { className?: string }) {
  return (
    <svg viewBox="0 0 32 32" fill="none" aria-hidden className={className ?? 'size-7 text-accent'}>
      <circle cx="16" cy="16" r="10.5" stroke="currentColor" strokeWidth="2.5" />
      <circle cx="16" cy="5.5" r="4.5" fill="currentColor" />
      <circle cx="6.9" cy="21.25" r="4.5" fill="currentColor" />
      <circle cx="25.1" cy="21.25" r="4.5" fill="currentColor" />
    </svg>
  )
}

export function Logo() {
  return (
    <span className="inline-flex items-center gap-2.5">
      <Mark className="size-6 text-accent" />
      <span className="text-[17px] font-semibold tracking-tight">Quorate</span>
    </span>
  )
}
