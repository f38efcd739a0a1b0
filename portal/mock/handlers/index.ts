import { accounts } from './accounts'
import { groups } from './groups'
import { spending } from './spend'
import { statuses } from './status'
import { telemetry } from './telemetry'

/** The whole contract, answered from memory. */
export const handlers = [...accounts, ...groups, ...spending, ...statuses, ...telemetry]
