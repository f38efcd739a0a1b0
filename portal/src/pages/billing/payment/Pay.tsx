import { useMutation } from '@tanstack/react-query'
import { CreditCard } from 'lucide-react'
import { api, type Checkout, type Payment } from '@/api'
import { moneyShort } from '@/format/money'
import { Button } from '@/ui/Button'
import { CopyButton } from '@/ui/Copy'
import { ProblemNotice } from '@/ui/Notice'

interface Props {
  invoiceId: string
  payment: Payment
  currency: string
}

/** Leads to the provider's page, or says where to transfer what is due. */
export function Pay({ invoiceId, payment, currency }: Props) {
  const checkOut = useMutation({
    mutationFn: () => api.checkOut(invoiceId),
    onSuccess: ({ url }) => {
      if (url !== null) window.location.assign(url)
    },
  })
  const byCard = payment.provider === 'stripe'
  const leaving = checkOut.data !== undefined && checkOut.data.url !== null
  return (
    <div className="space-y-4 print:hidden">
      {(byCard || checkOut.data === undefined) && (
        <Button
          variant={byCard ? 'primary' : 'secondary'}
          busy={checkOut.isPending || leaving}
          icon={byCard ? <CreditCard aria-hidden className="size-4" /> : undefined}
          onClick={() => checkOut.mutate()}
        >
          {byCard ? `Pay ${moneyShort(payment.due_micros, currency)} by card` : 'How to pay'}
        </Button>
      )}
      {checkOut.data && checkOut.data.url === null && <Instructions checkout={checkOut.data} />}
      {checkOut.error && <ProblemNotice error={checkOut.error} />}
    </div>
  )
}

function Instructions({ checkout }: { checkout: Checkout }) {
  return (
    <div role="status" className="rounded-xl bg-sunken p-4 text-sm">
      {checkout.instructions.map((line) => (
        <p key={line}>{line}</p>
      ))}
      <p className="mt-3 flex flex-wrap items-center gap-x-2 text-ink-2">
        Amount and reference:
        <span className="nums font-medium text-ink">{moneyShort(checkout.amount_micros, checkout.currency)},</span>
        <span className="font-medium whitespace-nowrap text-ink">{checkout.reference}</span>
        <CopyButton text={checkout.reference} label="Copy the reference" />
      </p>
    </div>
  )
}
