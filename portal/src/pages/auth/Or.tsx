/** Between two ways to do the same. */
export function Or() {
  return (
    <p className="flex items-center gap-3 text-[13px] text-ink-3 before:h-px before:flex-1 before:bg-line after:h-px after:flex-1 after:bg-line">
      or
    </p>
  )
}
