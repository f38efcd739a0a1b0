import * as sdk from '../generated'
import { setCsrfToken } from '../transport'
import type {
  Acceptance,
  Confirmation,
  IdentityErrand,
  Login,
  NewInvitation,
  ProviderAnswer,
  ProviderLogin,
  Role,
} from '../types'
import { throwOnError } from './paging'

/** Every answer about a session brings the token for later changes. */
function remember<R extends { csrf_token: string | null }>(session: R): R {
  setCsrfToken(session.csrf_token)
  return session
}

export const signUp = async (body: { email: string; password: string; organization: string }) =>
  remember(await sdk.signUp({ body, throwOnError }))
export const logIn = async (body: Login) => remember(await sdk.logIn({ body, throwOnError }))
export const logOut = async () => {
  await sdk.logOut({ throwOnError })
  setCsrfToken(null)
}
export const me = async (signal: AbortSignal) => remember(await sdk.getMe({ signal, throwOnError }))

export const switchOrganization = async (organization_id: string) =>
  remember(await sdk.switchOrganization({ body: { organization_id }, throwOnError }))
export const sendVerification = () => sdk.sendVerification({ throwOnError })
export const verifyEmail = (token: string) => sdk.verifyEmail({ body: { token }, throwOnError })
export const requestPasswordReset = (email: string) => sdk.requestPasswordReset({ body: { email }, throwOnError })
export const resetPassword = (body: { token: string; password: string }) => sdk.resetPassword({ body, throwOnError })
export const changePassword = (body: { password: string; new_password: string }) =>
  sdk.changePassword({ body, throwOnError })
export const confirmPerson = (body: Confirmation) => sdk.confirmPerson({ body, throwOnError })
export const listSessions = (signal: AbortSignal) => sdk.listSessions({ signal, throwOnError })
export const endSession = (session_id: string) => sdk.endSession({ path: { session_id }, throwOnError })
export const endOtherSessions = () => sdk.endOtherSessions({ throwOnError })
export const getSecondFactor = (signal: AbortSignal) => sdk.getSecondFactor({ signal, throwOnError })
export const beginTotp = () => sdk.beginTotp({ throwOnError })
export const confirmTotp = (code: string) => sdk.confirmTotp({ body: { code }, throwOnError })
export const removeTotp = () => sdk.removeTotp({ throwOnError })
export const renewRecoveryCodes = () => sdk.renewRecoveryCodes({ throwOnError })

export const listPasskeys = async (signal: AbortSignal) => (await sdk.listPasskeys({ signal, throwOnError })).items
export const beginPasskey = () => sdk.beginPasskey({ throwOnError })
export const addPasskey = (name: string, credential: Record<string, unknown>) =>
  sdk.addPasskey({ body: { name, credential }, throwOnError })
export const removePasskey = (passkey_id: string) => sdk.removePasskey({ path: { passkey_id }, throwOnError })
export const askForPasskey = () => sdk.askForPasskey({ throwOnError })
export const logInWithPasskey = async (credential: Record<string, unknown>) =>
  remember(await sdk.logInWithPasskey({ body: { credential }, throwOnError }))

export const listIdentityProviders = async (signal: AbortSignal) =>
  (await sdk.listIdentityProviders({ signal, throwOnError })).items
export const beginProviderLogin = (provider: string) => sdk.beginProviderLogin({ body: { provider }, throwOnError })
export const logInWithProvider = async (body: ProviderLogin) => {
  const answer = await sdk.logInWithProvider({ body, throwOnError })
  if (answer.me) remember(answer.me)
  return answer
}
export const signUpWithProvider = async (organization: string) =>
  remember(await sdk.signUpWithProvider({ body: { organization }, throwOnError }))
export const listIdentities = async (signal: AbortSignal) => (await sdk.listIdentities({ signal, throwOnError })).items
export const beginIdentity = (body: IdentityErrand) => sdk.beginIdentity({ body, throwOnError })
export const addIdentity = (body: ProviderAnswer) => sdk.addIdentity({ body, throwOnError })
export const removeIdentity = (identity_id: string) => sdk.removeIdentity({ path: { identity_id }, throwOnError })

export const listMembers = async (signal: AbortSignal) => (await sdk.listMembers({ signal, throwOnError })).items
export const changeRole = (user_id: string, role: Role) =>
  sdk.changeRole({ path: { user_id }, body: { role }, throwOnError })
export const removeMember = (user_id: string) => sdk.removeMember({ path: { user_id }, throwOnError })
export const listInvitations = async (signal: AbortSignal) =>
  (await sdk.listInvitations({ signal, throwOnError })).items
export const inviteMember = (body: NewInvitation) => sdk.inviteMember({ body, throwOnError })
export const withdrawInvitation = (invitation_id: string) =>
  sdk.withdrawInvitation({ path: { invitation_id }, throwOnError })
export const lookAtInvitation = (token: string, signal: AbortSignal) =>
  sdk.lookAtInvitation({ body: { token }, signal, throwOnError })
export const acceptInvitation = async (token: string) =>
  remember(await sdk.acceptInvitation({ body: { token }, throwOnError }))
export const beginFirstPasskey = (token: string) => sdk.beginFirstPasskey({ body: { token }, throwOnError })
export const acceptInvitationAsNew = async (body: Acceptance) =>
  remember(await sdk.acceptInvitationAsNew({ body, throwOnError }))
