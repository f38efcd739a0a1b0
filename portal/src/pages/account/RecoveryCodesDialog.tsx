import { Button } from '@/ui/Button'
import { CopyButton } from '@/ui/Copy'
import { Dialog } from '@/ui/Dialog'

export function RecoveryCodesDialog({ codes, onClose }: { codes: string[] | null; onClose: () => void }) {
  return (
    <Dialog open={codes !== null} onOpenChange={(next) => !next && onClose()} title="Your new recovery codes">
      {codes && <Codes codes={codes} onKept={onClose} />}
    </Dialog>
  )
}

/** Codes that are shown this once. */
export function Codes({ codes, onKept }: { codes: string[]; onKept: () => void }) {
  return (
    <>
      <p className="text-sm leading-relaxed text-ink-2">
        Each works once, in the place of a code. Keep them where you do not keep your phone. They are shown this once.
      </p>
      <ul
        aria-label="Recovery codes"
        className="mt-4 grid grid-cols-2 gap-x-6 gap-y-1.5 rounded-xl border border-line bg-sunken p-4 font-mono text-sm select-all"
      >
        {codes.map((code) => (
          <li key={code}>{code}</li>
        ))}
      </ul>
      <div className="mt-5 flex items-center justify-end gap-2">
        <CopyButton text={codes.join('\n')} label="Copy recovery codes" />
        <Button onClick={onKept}>I have kept them</Button>
      </div>
    </>
  )
}
