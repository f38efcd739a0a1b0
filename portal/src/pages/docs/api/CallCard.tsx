import { useState, type ReactNode } from 'react'
import { CopyButton } from '@/ui/Copy'
import { scrollable } from '@/ui/scrollable'
import { answerOf, bodyOf, curlOf, fieldsOf, typeOf, type Call, type Contract, type FieldRow } from './contract'

/** Descriptions mark code as Markdown does. */
const plain = (text: string) => text.replaceAll('`', '')

const TONES: Record<string, string> = {
  GET: 'text-accent-text',
  DELETE: 'text-danger-text',
}

/** A line for a call, which opens to show what it takes and answers. */
export function CallCard({ call, contract }: { call: Call; contract: Contract }) {
  const [open, setOpen] = useState(false)
  const { method, path, operation } = call
  const [lead = ''] = plain(operation.description ?? '').split('\n')
  return (
    <details id={operation.operationId} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="flex cursor-pointer list-none flex-wrap items-baseline gap-x-4 gap-y-1 px-5 py-3 hover:bg-hover">
        <span className={`w-14 font-mono text-[12.5px] font-semibold ${TONES[method] ?? 'text-ink-2'}`}>{method}</span>
        <code className="font-mono text-[13px] break-all">{path}</code>
        <span className="basis-full text-[13px] text-ink-3 md:pl-18">{lead}</span>
      </summary>
      {open && <Details call={call} contract={contract} />}
    </details>
  )
}

function Details({ call, contract }: { call: Call; contract: Contract }) {
  const { operation } = call
  const parameters = (operation.parameters ?? []).map((each) => ({
    name: each.name,
    type: `${each.schema ? typeOf(each.schema) : 'string'}, ${each.in}`,
    required: each.required ?? false,
    description: each.description ?? '',
  }))
  const body = bodyOf(operation.requestBody)
  const answer = answerOf(operation)
  const answered = bodyOf(answer?.content)
  const curl = curlOf(call, window.location.origin)
  return (
    <div className="space-y-6 border-t border-line bg-sunken px-5 py-5">
      {operation.description && (
        <p className="max-w-prose text-sm leading-relaxed whitespace-pre-line text-ink-2">
          {plain(operation.description)}
        </p>
      )}
      <div className="relative">
        <pre
          {...scrollable(`How to call ${operation.operationId}`)}
          className="overflow-x-auto rounded-xl border border-line bg-surface p-4 pr-14 font-mono text-[12.5px] leading-relaxed"
        >
          {curl}
        </pre>
        <span className="absolute top-2 right-2">
          <CopyButton text={curl} label="Copy" />
        </span>
      </div>
      <Fields title="Parameters" rows={parameters} />
      {body && <Fields title={`Body, ${body.kind}`} rows={fieldsOf(contract, body.schema)} />}
      {answer && (
        <Fields
          title={`Answer ${answer.status}${answered?.schema ? `, ${typeOf(answered.schema)}` : ''}`}
          rows={fieldsOf(contract, answered?.schema)}
          otherwise={answered ? answer.description : 'Without a body.'}
        />
      )}
    </div>
  )
}

function Fields({ title, rows, otherwise }: { title: string; rows: FieldRow[]; otherwise?: ReactNode }) {
  if (rows.length === 0 && otherwise === undefined) return null
  return (
    <div>
      <h3 className="mb-1 text-[13px] font-medium text-ink-3">{title}</h3>
      {rows.length === 0 && <p className="text-sm text-ink-2">{otherwise}</p>}
      <dl className="divide-y divide-line">
        {rows.map((row) => (
          <div key={row.name} className="grid gap-x-6 py-2 text-sm md:grid-cols-[minmax(0,15rem)_1fr]">
            <dt>
              <code className="font-mono text-[13px] font-medium break-all">{row.name}</code>
              {row.required && <span className="ml-2 text-xs text-ink-3">required</span>}
            </dt>
            <dd className="min-w-0">
              <code className="font-mono text-[12.5px] break-words text-ink-2">{row.type}</code>
              {row.description && <p className="mt-0.5 text-[13px] text-ink-3">{plain(row.description)}</p>}
            </dd>
          </div>
        ))}
      </dl>
    </div>
  )
}
