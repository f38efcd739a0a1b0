import { accounts } from './accounts'
import { groups } from './groups'
import { paying } from './payments'
import { spending } from './spend'
import { statuses } from './status'
import { telemetry } from './telemetry'

/** The whole contract, answered from memory. */
export const handlers = [...accounts, ...groups, ...paying, ...spending, ...statuses, ...telemetry]
