import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { handlers } from './handlers'

/** The document itself, which it does not list. */
const DOCUMENT = 'GET /v1/openapi.json'
/** Operations that the portal never calls, so that the mock service need not answer them. */
const NOT_USED = new Set([
  'GET /v1/health',
  'GET /v1/ready',
  // For programs that no webhook reaches.
  'GET /v1/events',
  'GET /v1/projects',
  'GET /v1/projects/:id',
  'GET /v1/groups/:id/handle',
  'GET /v1/groups/:id/usage',
  'GET /v1/budgets/:id',
  'GET /v1/budgets/:id/alerts',
  // Operations for infrastructure as code and for operators.
  // Shown by the tests of the real stack: sessions of another organization.
  'POST /v1/me/organization',
  'POST /v1/me/invitations/accept',
  'POST /v1/invitations/accept',
  // The ceremonies of passkeys: shown by the tests of the real stack.
  'POST /v1/passkey-requests',
  'POST /v1/invitations/passkey',
  'POST /v1/login/passkey',
  'POST /v1/me/passkeys/begin',
  'POST /v1/me/passkeys',
  // Links, which the browser follows.
  'GET /v1/groups/:id/entries/:id',
  'GET /v1/audit/export',
  'GET /v1/operator/servers/:id',
  // Made by the command, or by programs.
  'POST /v1/operator/sessions',
  // Probers call them.
  'GET /v1/prober/targets',
  'POST /v1/prober/minutes',
  // The payment provider calls it.
  'POST /v1/payments/stripe/events',
  // Feed readers and links from outside.
  'GET /v1/status/feed',
  'GET /v1/status/incidents/:id',
  // Scrapers read it.
  'GET /v1/spend/metrics',
  // Consumers keep their places with SDKs.
  'GET /v1/groups/:id/checkpoints',
  'GET /v1/groups/:id/checkpoints/:id',
  'PUT /v1/groups/:id/checkpoints/:id',
  'DELETE /v1/groups/:id/checkpoints/:id',
])

function operations(): string[] {
  const contract = JSON.parse(readFileSync('../sdk/contract/openapi.json', 'utf8')) as {
    paths: Record<string, Record<string, unknown>>
  }
  return Object.entries(contract.paths).flatMap(([path, methods]) =>
    Object.keys(methods)
      .filter((method) => method !== 'parameters')
      .map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, ':id')}`),
  )
}

it('answers every call of the contract that the portal makes, and no other', () => {
  const answered = handlers.map(({ info }) => `${String(info.method)} ${String(info.path).replaceAll(/:\w+/g, ':id')}`)
  expect(answered.toSorted()).toEqual([...operations(), DOCUMENT].filter((each) => !NOT_USED.has(each)).toSorted())
})
