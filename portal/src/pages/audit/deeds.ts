import type { AuditEvent } from '@/api'

const DEEDS: Record<string, string> = {
  sign_up: 'signed up',
  log_in: 'logged in',
  log_out: 'logged out',
  create_project: 'created the project',
  delete_project: 'deleted a project',
  create_group: 'created the group',
  resize_group: 'resized a group',
  change_group_settings: 'changed the settings of a group',
  change_project_settings: 'renamed a project',
  delete_group: 'deleted a group',
  reset_group: 'reset a lost group',
  create_key: 'made the API key',
  create_organization_key: 'made the API key',
  rotate_key: 'rotated an API key',
  revoke_key: 'revoked an API key',
  invite_member: 'invited',
  withdraw_invitation: 'withdrew an invitation',
  accept_invitation: 'joined',
  accept_invitation_as_new: 'joined',
  change_role: 'changed a member’s role to',
  remove_member: 'removed a member',
  put_budget: 'set a budget',
  delete_budget: 'removed a budget',
  make_commitment: 'made a commitment',
  put_guarantee: 'changed the guarantee',
  delete_guarantee: 'took the guarantee back',
  change_password: 'changed the password',
  verify_email: 'verified the address',
  log_in_with_passkey: 'logged in with a passkey',
  begin_passkey: 'began to add a passkey',
  add_passkey: 'added a passkey',
  remove_passkey: 'removed a passkey',
  request_quota: 'asked for a greater quota',
  withdraw_quota_request: 'withdrew a request for a greater quota',
  view_organization: 'looked at the organization, as an operator',
  set_organization_quota: 'set a quota, as an operator',
  reset_organization_quota: 'set a quota back, as an operator',
  decline_quota_request: 'declined a greater quota, as an operator',
  log_in_with_provider: 'logged in with an identity',
  sign_up_with_provider: 'signed up with an identity',
  begin_identity: 'began to show an identity',
  add_identity: 'connected an identity',
  remove_identity: 'removed an identity',
  begin_totp: 'began to add an authenticator',
  confirm_totp: 'added an authenticator',
  remove_totp: 'removed the authenticator',
  renew_recovery_codes: 'made new recovery codes',
  end_session: 'ended a session',
  end_other_sessions: 'ended all other sessions',
  confirm_person: 'confirmed who they are',
  close_organization: 'asked to close the organization',
  reopen_organization: 'reopened the organization',
  suspend_organization: 'suspended the organization',
  end_suspension: 'ended the suspension',
  create_webhook: 'created a webhook to',
  change_webhook: 'changed a webhook',
  delete_webhook: 'deleted a webhook',
  rotate_webhook_secret: 'rotated a webhook’s secret',
  test_webhook: 'tested a webhook',
  resend_webhook_delivery: 'sent an event again',
  replay_webhook: 'replayed events',
  switch_organization: 'switched to this organization',
}
/** The field of the body that says of what, where there is one. */
const OBJECTS = ['name', 'email', 'role', 'url'] as const

/** `created the group “orders”`; for a call without a word of its own, the call. */
export function deedOf({ operation, request }: Pick<AuditEvent, 'operation' | 'request'>): string {
  const deed = DEEDS[operation] ?? operation.replaceAll('_', ' ')
  const body = typeof request === 'object' && request !== null ? (request as Record<string, unknown>) : {}
  const object = OBJECTS.map((field) => body[field]).find((value) => typeof value === 'string')
  const says = /created|made the|invited$|role to$/.test(deed)
  return says && object ? `${deed} ${deed.startsWith('changed') || deed === 'invited' ? object : `“${object}”`}` : deed
}
