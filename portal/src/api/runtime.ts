import type { CreateClientConfig } from './generated/client.gen'
import { portalFetch } from './transport'

/** The generated client talks to the origin that served the portal, through the portal's own transport. */
export const createClientConfig: CreateClientConfig = (config) => ({
  ...config,
  baseUrl: globalThis.location.origin,
  fetch: portalFetch,
})
