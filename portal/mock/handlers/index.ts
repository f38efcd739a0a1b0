import { accounts } from './accounts'
import { billing } from './billing'
import { consoles } from './console'
import { groups } from './groups'
import { guarantees } from './guarantees'
import { operators } from './operator'
import { identities } from './identities'
import { logs } from './log'
import { moves } from './moves'
import { organization } from './organization'
import { paying } from './payments'
import { people } from './people'
import { quotas } from './quotas'
import { settings } from './settings'
import { spending } from './spend'
import { statuses } from './status'
import { telemetry } from './telemetry'
import { webhooks } from './webhooks'

/** The whole contract, answered from memory. */
export const handlers = [
  ...accounts,
  ...billing,
  ...consoles,
  ...groups,
  ...guarantees,
  ...operators,
  ...identities,
  ...logs,
  ...moves,
  ...organization,
  ...paying,
  ...people,
  ...quotas,
  ...settings,
  ...spending,
  ...statuses,
  ...telemetry,
  ...webhooks,
]
