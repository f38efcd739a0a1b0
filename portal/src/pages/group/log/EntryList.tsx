import { Download } from 'lucide-react'
import type { LogEntry } from '@/api'
import { bytes, count } from '@/format/quantity'
import { moment } from '@/format/time'
import { buttonClass } from '@/ui/Button'
import { CopyButton } from '@/ui/Copy'
import { bytesOf, preview, whole, type View } from './payload'

interface Props {
  entries: LogEntry[]
  view: View
  /** The address of an entry's bytes. */
  fileOf: (offset: number) => string
}

/** A line for each entry, which opens to show the whole. */
export function EntryList({ entries, view, fileOf }: Props) {
  return (
    <ol aria-label="Entries" className="divide-y divide-line overflow-hidden rounded-2xl border border-line bg-surface">
      {entries.map((entry) => (
        <li key={entry.offset}>
          <Line entry={entry} view={view} file={fileOf(entry.offset)} />
        </li>
      ))}
    </ol>
  )
}

function Line({ entry, view, file }: { entry: LogEntry; view: View; file: string }) {
  const data = bytesOf(entry.data)
  return (
    <details className="group/entry">
      <summary className="grid cursor-pointer list-none grid-cols-[auto_1fr] items-baseline gap-x-4 gap-y-0.5 px-4 py-2 text-[13px] group-open/entry:bg-hover hover:bg-hover sm:grid-cols-[5.5rem_12.5rem_4.5rem_minmax(0,1fr)] sm:px-5">
        <span className="nums font-medium">{count(entry.offset)}</span>
        <time dateTime={entry.at} title={entry.at} className="nums whitespace-nowrap text-ink-3">
          {moment(entry.at)}
        </time>
        <span className="nums hidden text-right whitespace-nowrap text-ink-3 sm:block">{bytes(entry.size_bytes)}</span>
        <code className="col-span-2 truncate font-mono text-[12.5px] text-ink-2 sm:col-span-1">
          {preview(data, view) || '(empty)'}
        </code>
      </summary>
      <Whole entry={entry} shown={whole(data, view)} file={file} />
    </details>
  )
}

function Whole({ entry, shown, file }: { entry: LogEntry; shown: string; file: string }) {
  return (
    <div className="border-t border-line bg-sunken px-4 py-3 sm:px-5">
      {/* A focusable box, so that its text can be scrolled by keyboard. */}
      <pre
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        tabIndex={0}
        aria-label={`Entry ${entry.offset}`}
        className="max-h-96 overflow-auto font-mono text-[12.5px] leading-relaxed break-words whitespace-pre-wrap"
      >
        {shown || '(empty)'}
      </pre>
      <div className="mt-3 flex flex-wrap items-center gap-2">
        <CopyButton text={shown} label={`Copy entry ${entry.offset}`} />
        <a href={file} download className={buttonClass('quiet', 'small')}>
          <Download aria-hidden className="size-4" />
          Download
        </a>
        <p className="text-[13px] text-ink-3">
          {bytes(entry.size_bytes)}
          {entry.is_cut && `, of which the first ${bytes(bytesOf(entry.data).length)} are shown`}
        </p>
      </div>
    </div>
  )
}
