import { queryOptions, skipToken } from '@tanstack/react-query'
import * as calls from '../calls'
import { keys } from './keys'

export const meQuery = queryOptions({
  queryKey: keys.me,
  queryFn: ({ signal }) => calls.me(signal),
  staleTime: 60_000,
})

export const sessionsQuery = queryOptions({
  queryKey: keys.sessions,
  queryFn: ({ signal }) => calls.listSessions(signal),
})
export const secondFactorQuery = queryOptions({
  queryKey: keys.secondFactor,
  queryFn: ({ signal }) => calls.getSecondFactor(signal),
})
export const passkeysQuery = queryOptions({
  queryKey: keys.passkeys,
  queryFn: ({ signal }) => calls.listPasskeys(signal),
})
export const identityProvidersQuery = queryOptions({
  queryKey: keys.identityProviders,
  queryFn: ({ signal }) => calls.listIdentityProviders(signal),
  staleTime: Infinity,
})
export const identitiesQuery = queryOptions({
  queryKey: keys.identities,
  queryFn: ({ signal }) => calls.listIdentities(signal),
})
export const membersQuery = queryOptions({
  queryKey: keys.members,
  queryFn: ({ signal }) => calls.listMembers(signal),
})
export const invitationsQuery = queryOptions({
  queryKey: keys.invitations,
  queryFn: ({ signal }) => calls.listInvitations(signal),
})

/** `token`: the secret of the link; empty: the link was cut short. */
export const invitedQuery = (token: string) =>
  queryOptions({
    queryKey: ['invited', token],
    queryFn: token ? ({ signal }) => calls.lookAtInvitation(token, signal) : skipToken,
    retry: false,
  })
