import type { LiveState } from '@/api'

const TEXTS: Record<LiveState, string> = {
  connecting: 'Connecting',
  open: 'Live',
  silent: 'No samples',
  waiting: 'Reconnecting',
}
const MEANINGS: Record<LiveState, string> = {
  connecting: 'Waiting for the first sample.',
  open: 'A sample each second.',
  silent: 'The service gets no samples at the moment. Appends are not affected.',
  waiting: 'The connection was lost; the chart goes on as soon as it is back.',
}

export function LiveBadge({ state }: { state: LiveState }) {
  const colour = state === 'open' ? 'bg-accent' : 'bg-warn'
  return (
    <span title={MEANINGS[state]} className="inline-flex items-center gap-1.5 text-[13px] text-ink-3">
      <span aria-hidden className={`size-1.5 animate-[breathe_2s_ease-in-out_infinite] rounded-full ${colour}`} />
      {TEXTS[state]}
    </span>
  )
}
