import { setupServer } from 'msw/node'
import { handlers } from './handlers'

/** The same mock service for unit tests in Node. */
export const server = setupServer(...handlers)
