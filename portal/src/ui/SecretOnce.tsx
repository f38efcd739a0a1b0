import { CopyButton } from './Copy'
import { Notice } from './Notice'

interface Props {
  secret: string
  note?: string
  what?: 'key' | 'secret'
}

/** A secret that cannot be shown again. */
export function SecretOnce({ secret, note, what = 'key' }: Props) {
  return (
    <Notice tone="good" title={`Copy your ${what} now. It is shown this once.`}>
      <div className="mt-2 flex items-center gap-1 rounded-lg border border-line bg-surface py-1 pr-1 pl-3">
        <code data-testid="api-key" className="min-w-0 flex-1 py-1 font-mono text-[13px] break-all text-ink select-all">
          {secret}
        </code>
        <CopyButton text={secret} label={what === 'key' ? 'Copy API key' : 'Copy secret'} />
      </div>
      <p className="mt-2 text-[13px]">
        Keep it like a password: outside your source code, in your secret store. {note}
      </p>
    </Notice>
  )
}
