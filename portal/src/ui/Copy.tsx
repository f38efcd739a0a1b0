import { Check, Copy } from 'lucide-react'
import { useEffect, useState } from 'react'
import { IconButton } from './Button'
import { scrollable } from './scrollable'

const CONFIRM_MS = 1_800

async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  // On an insecure origin (a private address over HTTP) only the older way works.
  const area = document.createElement('textarea')
  area.value = text
  area.style.position = 'fixed'
  area.style.opacity = '0'
  document.body.append(area)
  area.select()
  document.execCommand('copy')
  area.remove()
}

export function useCopy(): { copied: boolean; copy: (text: string) => void } {
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return undefined
    const timer = setTimeout(() => setCopied(false), CONFIRM_MS)
    return () => clearTimeout(timer)
  }, [copied])
  return { copied, copy: (text) => void copyText(text).then(() => setCopied(true)) }
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const { copied, copy } = useCopy()
  return (
    <>
      <IconButton label={label} onClick={() => copy(text)}>
        {copied ? <Check aria-hidden className="size-4 text-accent" /> : <Copy aria-hidden className="size-4" />}
      </IconButton>
      <span role="status" className="sr-only">
        {copied ? 'Copied' : ''}
      </span>
    </>
  )
}

/** Text to copy, shown as code: lines never wrap, long ones scroll. */
export function CodeBlock({ code, label }: { code: string; label: string }) {
  return (
    <div className="flex items-start rounded-xl border border-line bg-sunken">
      <pre {...scrollable(label)} className="min-w-0 flex-1 overflow-x-auto p-4 font-mono text-[13px] leading-relaxed">
        <code>{code}</code>
      </pre>
      <div className="shrink-0 p-2">
        <CopyButton text={code} label={`Copy ${label}`} />
      </div>
    </div>
  )
}
