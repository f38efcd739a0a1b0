import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api, keys, type ProjectGuarantee } from '@/api'
import { moneyShort } from '@/format/money'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { ProblemNotice } from '@/ui/Notice'

interface Props {
  guarantee: ProjectGuarantee
  open: boolean
  onClose: () => void
}

export function TakeBackDialog({ guarantee, open, onClose }: Props) {
  const queries = useQueryClient()
  const taking = useMutation({
    mutationFn: () => api.deleteGuarantee(guarantee.project_id),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: keys.guarantee(guarantee.project_id) })
      onClose()
    },
  })
  const { price } = guarantee
  return (
    <Dialog
      open={open}
      onOpenChange={(next) => !next && onClose()}
      title="Take the guarantee back?"
      description={`Groups have their own rates from then on, and ${moneyShort(price.monthly_micros, price.currency)} a month less is billed. Clients above them are throttled.`}
    >
      {taking.error && <ProblemNotice error={taking.error} />}
      <div className="mt-2 flex justify-end gap-2">
        <Button variant="secondary" onClick={onClose}>
          Keep it
        </Button>
        <Button variant="danger" busy={taking.isPending} onClick={() => taking.mutate()}>
          Take back
        </Button>
      </div>
    </Dialog>
  )
}
