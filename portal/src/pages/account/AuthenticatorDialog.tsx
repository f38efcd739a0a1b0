import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState, type FormEvent } from 'react'
import { api, keys, problemOf } from '@/api'
import { Button } from '@/ui/Button'
import { CopyButton } from '@/ui/Copy'
import { Dialog } from '@/ui/Dialog'
import { TextField } from '@/ui/Field'
import { ProblemNotice } from '@/ui/Notice'
import { Skeleton } from '@/ui/Surface'
import { QrCode } from './QrCode'
import { Codes } from './RecoveryCodesDialog'

const CODE_LENGTH = 6

export function AuthenticatorDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  const queries = useQueryClient()
  const [code, setCode] = useState('')
  const { mutate: begin, reset: forget, ...begun } = useMutation({ mutationFn: api.beginTotp })
  const confirmation = useMutation({
    mutationFn: () => api.confirmTotp(code),
    onSuccess: () => void queries.invalidateQueries({ queryKey: keys.secondFactor }),
  })
  useEffect(() => {
    if (open) begin()
  }, [open, begin])
  const close = () => {
    setCode('')
    forget()
    confirmation.reset()
    onClose()
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (code.length >= CODE_LENGTH) confirmation.mutate()
  }
  const isWrong = confirmation.error !== null && problemOf(confirmation.error).code === 'second_factor_wrong'
  const isDone = confirmation.data !== undefined
  return (
    <Dialog
      open={open}
      onOpenChange={(next) => !next && close()}
      title={isDone ? 'Keep your recovery codes' : 'Add an authenticator'}
      description={isDone ? undefined : 'Scan this with your authenticator app, then type the code that it shows.'}
    >
      {isDone ? (
        <Codes codes={confirmation.data.codes} onKept={close} />
      ) : (
        <form onSubmit={submit} className="space-y-4">
          {begun.error && <ProblemNotice error={begun.error} />}
          {begun.data ? (
            <>
              <QrCode text={begun.data.uri} label="QR code for the authenticator" />
              <p className="flex items-center justify-center gap-1 text-[13px] text-ink-2">
                <code className="font-mono break-all select-all">{begun.data.secret}</code>
                <CopyButton text={begun.data.secret} label="Copy the secret" />
              </p>
            </>
          ) : (
            !begun.error && <Skeleton className="mx-auto size-44 rounded-xl" />
          )}
          <TextField
            label="Code"
            inputMode="numeric"
            autoComplete="one-time-code"
            placeholder="123456"
            value={code}
            onChange={(event) => setCode(event.target.value)}
            error={isWrong ? 'This is not the code that it shows now.' : undefined}
          />
          {confirmation.error && !isWrong && <ProblemNotice error={confirmation.error} />}
          <div className="flex justify-end">
            <Button type="submit" busy={confirmation.isPending}>
              Confirm
            </Button>
          </div>
        </form>
      )}
    </Dialog>
  )
}
