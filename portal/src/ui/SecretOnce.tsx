import { CopyButton } from './Copy'
import { Notice } from './Notice'

/** A secret that cannot be shown again. */
export function SecretOnce({ secret, note }: { secret: string; note?: string }) {
  return (
    <Notice tone="good" title="Copy your key now. It is shown this once.">
      <div className="mt-2 flex items-center gap-1 rounded-lg border border-line bg-surface py-1 pr-1 pl-3">
        <code data-testid="api-key" className="min-w-0 flex-1 py-1 font-mono text-[13px] break-all text-ink select-all">
          {secret}
        </code>
        <CopyButton text={secret} label="Copy API key" />
      </div>
      <p className="mt-2 text-[13px]">
        Keep it like a password: outside your source code, in your secret store. {note}
      </p>
    </Notice>
  )
}
