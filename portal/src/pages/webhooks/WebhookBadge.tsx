import type { Webhook } from '@/api'
import { Badge } from '@/ui/StatusBadge'

export function WebhookBadge({ webhook }: { webhook: Webhook }) {
  if (webhook.status === 'disabled')
    return (
      <Badge tone="danger" title="The receiver answered 410, or took nothing for five days.">
        Disabled
      </Badge>
    )
  if (webhook.status === 'paused') return <Badge tone="plain">Paused</Badge>
  if (webhook.failing_since)
    return (
      <Badge tone="warn" title="The last deliveries failed. They are tried again.">
        Failing
      </Badge>
    )
  return <Badge tone="good">Enabled</Badge>
}
