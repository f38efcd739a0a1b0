import type { CreateClientConfig } from './generated/client'
import { portalFetch } from './transport'

/** The generated client calls the origin that served the portal, through the portal's own transport. */
export const createClientConfig: CreateClientConfig = (config) => ({
  ...config,
  baseUrl: globalThis.location.origin,
  fetch: portalFetch,
})
