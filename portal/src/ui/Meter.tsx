/** A thin bar under a number: `part` of a whole, 0 to 1. The number beside it says the same. */
export function Meter({ part, tone = 'accent' }: { part: number; tone?: 'accent' | 'warn' }) {
  const width = Math.min(1, Math.max(0, part)) * 100
  return (
    <span aria-hidden className="block h-1 w-20 overflow-hidden rounded-full bg-line">
      <span
        className={`block h-full rounded-full transition-[width] duration-500 ${tone === 'warn' ? 'bg-warn' : 'bg-accent'}`}
        style={{ width: `${width}%` }}
      />
    </span>
  )
}
