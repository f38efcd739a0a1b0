import { accounts } from './accounts'
import { billing } from './billing'
import { groups } from './groups'
import { guarantees } from './guarantees'
import { operators } from './operator'
import { identities } from './identities'
import { logs } from './log'
import { organization } from './organization'
import { paying } from './payments'
import { people } from './people'
import { spending } from './spend'
import { statuses } from './status'
import { telemetry } from './telemetry'
import { webhooks } from './webhooks'

/** The whole contract, answered from memory. */
export const handlers = [
  ...accounts,
  ...billing,
  ...groups,
  ...guarantees,
  ...operators,
  ...identities,
  ...logs,
  ...organization,
  ...paying,
  ...people,
  ...spending,
  ...statuses,
  ...telemetry,
  ...webhooks,
]
