import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api, keys, type Server } from '@/api'
import { Button } from '@/ui/Button'
import { Dialog } from '@/ui/Dialog'
import { ProblemNotice } from '@/ui/Notice'
import type { Deed } from './ServersTable'

const TEXTS: Record<Deed, { title: string; text: string; proceed: string; danger?: boolean }> = {
  drain: {
    title: 'Drain',
    text: 'Its replicas move to other servers, one after the other; customers hardly notice. No new ones come. You can call it off.',
    proceed: 'Drain server',
  },
  'call off': {
    title: 'Call off the drain of',
    text: 'Replicas that have moved stay where they are. It takes new ones again.',
    proceed: 'Call off the drain',
  },
  'give up': {
    title: 'Give up',
    text: 'Only if neither the machine nor its disk will come back: groups whose last replica it had are lost then.',
    proceed: 'Give server up',
    danger: true,
  },
}
const CALLS: Record<Deed, (serverId: number) => Promise<unknown>> = {
  drain: api.drainServer,
  'call off': api.callOffDrain,
  'give up': api.giveUpServer,
}

interface Props {
  chosen: { server: Server; deed: Deed } | null
  onClose: () => void
}

export function ServerDialog({ chosen, onClose }: Props) {
  const queries = useQueryClient()
  const change = useMutation({
    mutationFn: ({ server, deed }: { server: Server; deed: Deed }) => CALLS[deed](server.server_id),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: keys.operator })
      onClose()
    },
  })
  const texts = TEXTS[chosen?.deed ?? 'drain']
  return (
    <Dialog
      open={chosen !== null}
      onOpenChange={(next) => {
        if (next) return
        change.reset()
        onClose()
      }}
      title={`${texts.title} ${chosen?.server.name ?? ''}?`}
      description={texts.text}
    >
      {change.error && <ProblemNotice error={change.error} />}
      <div className="mt-4 flex flex-wrap justify-end gap-2">
        <Button variant="secondary" onClick={onClose}>
          Cancel
        </Button>
        <Button
          variant={texts.danger ? 'danger' : 'primary'}
          busy={change.isPending}
          onClick={() => chosen && change.mutate(chosen)}
        >
          {texts.proceed}
        </Button>
      </div>
    </Dialog>
  )
}
