import { ArrowDownToLine, ChevronLeft, ChevronRight, Pause, Play } from 'lucide-react'
import type { LogPage } from '@/api'
import { count } from '@/format/quantity'
import { Button } from '@/ui/Button'
import { PAGE } from './place'

interface Props {
  page: LogPage
  follows: boolean
  /** undefined: to the newest entries. */
  onGo: (offset: number | undefined) => void
  onFollow: (on: boolean) => void
}

const ICON = 'size-4'

/** The place of the page in the log, and the ways on. */
export function Paging({ page, follows, onGo, onFollow }: Props) {
  const first = page.items[0]?.offset ?? page.next_offset
  const isFirst = first <= page.first_offset ? 'These are the first entries.' : undefined
  const isLast = page.next_offset >= page.end_offset ? 'These are the newest entries.' : undefined
  return (
    <div className="mb-3 flex flex-wrap items-center justify-between gap-3">
      <p className="nums text-sm text-ink-2">{follows ? 'Following the log' : range(page)}</p>
      <div className="flex flex-wrap gap-2">
        {!follows && (
          <>
            <Button
              variant="secondary"
              size="small"
              icon={<ChevronLeft aria-hidden className={ICON} />}
              disabledReason={isFirst}
              onClick={() => onGo(Math.max(page.first_offset, first - PAGE))}
            >
              Older
            </Button>
            <Button
              variant="secondary"
              size="small"
              icon={<ChevronRight aria-hidden className={ICON} />}
              disabledReason={isLast}
              onClick={() => onGo(page.next_offset)}
            >
              Newer
            </Button>
            <Button
              variant="secondary"
              size="small"
              icon={<ArrowDownToLine aria-hidden className={ICON} />}
              onClick={() => onGo(undefined)}
            >
              Newest
            </Button>
          </>
        )}
        <Button
          variant={follows ? 'primary' : 'secondary'}
          size="small"
          icon={follows ? <Pause aria-hidden className={ICON} /> : <Play aria-hidden className={ICON} />}
          onClick={() => onFollow(!follows)}
        >
          {follows ? 'Stop following' : 'Follow'}
        </Button>
      </div>
    </div>
  )
}

function range({ items, first_offset, end_offset }: LogPage): string {
  if (end_offset === 0) return 'The log is empty'
  const log = `the log has ${count(first_offset)} to ${count(end_offset - 1)}`
  const [first, last] = [items[0], items.at(-1)]
  if (!first || !last) return `Nothing is here; ${log}`
  return `Entries ${count(first.offset)} to ${count(last.offset)}; ${log}`
}
