import * as calls from './calls'
import { ProblemError } from './problem'

/** The ceremonies with the browser's authenticator: making a passkey, and showing one. */

/** Makes a passkey and adds it to the account. */
export async function addPasskey(name: string) {
  requireSupport()
  const { public_key } = await calls.beginPasskey()
  return calls.addPasskey(name, await make(public_key))
}

/** Accepts an invitation with a new account, which has a passkey and no password. */
export async function joinWithPasskey(token: string, name: string) {
  requireSupport()
  const { user_id, public_key } = await calls.beginFirstPasskey(token)
  return calls.acceptInvitationAsNew({ token, passkey: { user_id, name, credential: await make(public_key) } })
}

function make(options: Record<string, unknown>): Promise<Record<string, unknown>> {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(
    options as unknown as PublicKeyCredentialCreationOptionsJSON,
  )
  return asked(() => navigator.credentials.create({ publicKey }))
}

/** The answer of one of the person's passkeys, for a log-in or a confirmation. */
export async function showPasskey(): Promise<Record<string, unknown>> {
  requireSupport()
  const { public_key } = await calls.askForPasskey()
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(
    public_key as unknown as PublicKeyCredentialRequestOptionsJSON,
  )
  return asked(() => navigator.credentials.get({ publicKey }))
}

async function asked(ceremony: () => Promise<Credential | null>): Promise<Record<string, unknown>> {
  try {
    const credential = await ceremony()
    if (credential instanceof PublicKeyCredential) return { ...credential.toJSON() }
  } catch (error) {
    throw failed(whyNot(error))
  }
  throw failed('The browser gave no passkey.')
}

function requireSupport(): void {
  // Browsers have them from 2025 on; older ones, and pages over http, do not.
  if (typeof PublicKeyCredential === 'undefined' || !('parseRequestOptionsFromJSON' in PublicKeyCredential))
    throw failed('This browser offers no passkeys here. Update it, or open the portal over https.')
}

/** In words for people: the names of these errors are the standard's. */
export function whyNot(error: unknown): string {
  const name = error instanceof DOMException ? error.name : ''
  if (name === 'NotAllowedError') return 'It was cancelled, or took too long. Nothing has changed.'
  if (name === 'InvalidStateError') return 'This device has a passkey of your account already.'
  if (name === 'SecurityError')
    return `Passkeys do not work at ${window.location.host}. Open the portal by its name, on this machine as localhost.`
  return error instanceof Error ? error.message : String(error)
}

function failed(detail: string): ProblemError {
  return new ProblemError({
    type: 'about:blank',
    title: 'No passkey was used',
    status: 0,
    detail,
    code: 'passkey_failed',
    request_id: '',
    retryable: true,
    errors: [],
  })
}
