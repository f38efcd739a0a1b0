export function Presets({
  values,
  label,
  onPick,
}: {
  values: number[]
  label: (value: number) => string
  onPick: (value: number) => void
}) {
  return (
    <div className="mt-2 flex flex-wrap gap-1.5">
      {values.map((value) => (
        <button
          key={value}
          type="button"
          onClick={() => onPick(value)}
          className="nums rounded-full border border-line px-2.5 py-1 text-xs text-ink-2 transition-colors hover:border-line-strong hover:bg-hover hover:text-ink"
        >
          {label(value)}
        </button>
      ))}
    </div>
  )
}
