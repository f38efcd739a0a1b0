import { http, HttpResponse } from 'msw'
import type { Confirmation, NewInvitation, Role } from '@/api'
import { database, newId, persist } from '../db'
import { seedAudit } from '../people'
import { invalid, notFound, page, problem, refuseStranger } from '../reply'

/** The links that work, and the code that every authenticator shows. */
const LINKS = { verify: 'verify', reset: 'reset', invitation: 'invitation' }
const CODE = '123456'
const WEEK_MS = 7 * 86_400_000

const done = () => {
  persist()
  return new HttpResponse(null, { status: 204 })
}
const wrongLink = () => problem('link_invalid', 'It was used, replaced by a newer one, or is too old.')
const codes = () => Array.from({ length: 10 }, (_, n) => `ABCD${n}-EFGH${n}`)

function present() {
  const db = database()
  return db.users.find((user) => user.id === db.session?.user_id)
}

/** A handler for who is logged in. */
type Answer = (request: Request, params: Record<string, unknown>) => Response | Promise<Response>
const signedIn =
  (answer: Answer) =>
  ({ request, params }: { request: Request; params: Record<string, unknown> }) =>
    refuseStranger(request) ?? answer(request, params)

const email = [
  http.post(
    '/v1/me/email/verification',
    signedIn(() => new HttpResponse(null, { status: 202 })),
  ),
  http.post(
    '/v1/me/email/verify',
    signedIn(async (request) => {
      const { token } = (await request.json()) as { token: string }
      if (token !== LINKS.verify) return wrongLink()
      const user = present()
      if (user) user.email_verified = true
      return done()
    }),
  ),
]

const passwords = [
  http.post('/v1/password/reset-requests', async ({ request }) => {
    const body = (await request.json()) as { email: string }
    if (!body.email.includes('@')) return invalid('body.email', 'Not an e-mail address.')
    return new HttpResponse(null, { status: 202 })
  }),
  http.post('/v1/password/reset', async ({ request }) => {
    const { token, password } = (await request.json()) as { token: string; password: string }
    if (password.length < 10) return invalid('body.password', 'Use at least 10 characters.')
    return token === LINKS.reset ? done() : wrongLink()
  }),
  http.post(
    '/v1/me/password',
    signedIn(async (request) => {
      const { password, new_password } = (await request.json()) as { password: string; new_password: string }
      const user = present()
      if (user?.password !== password) return problem('credentials_invalid', 'The password is wrong.')
      user.password = new_password
      return done()
    }),
  ),
  http.post(
    '/v1/me/confirm',
    signedIn(async (request) => {
      const { password, code } = (await request.json()) as Confirmation
      if (password && present()?.password !== password) return problem('credentials_invalid', 'The password is wrong.')
      if (code && code !== CODE) return problem('second_factor_wrong', 'Send the code that it shows now.')
      return done()
    }),
  ),
]

const sessions = [
  http.get(
    '/v1/me/sessions',
    signedIn(() => HttpResponse.json({ items: database().sessions })),
  ),
  http.delete(
    '/v1/me/sessions',
    signedIn(() => {
      const db = database()
      db.sessions = db.sessions.filter((session) => session.is_current)
      return done()
    }),
  ),
  http.delete(
    '/v1/me/sessions/:id',
    signedIn((_request, { id }) => {
      const db = database()
      db.sessions = db.sessions.filter((session) => session.id !== id)
      return done()
    }),
  ),
]

const secondFactor = [
  http.get(
    '/v1/me/second-factor',
    signedIn(() => HttpResponse.json(database().secondFactor)),
  ),
  http.post(
    '/v1/me/totp',
    signedIn(() =>
      HttpResponse.json(
        { secret: 'JBSWY3DPEHPK3PXP', uri: 'otpauth://totp/Quorate:you%40example.com?secret=JBSWY3DPEHPK3PXP' },
        { status: 201 },
      ),
    ),
  ),
  http.post(
    '/v1/me/totp/confirm',
    signedIn(async (request) => {
      const { code } = (await request.json()) as { code: string }
      if (code !== CODE) return problem('second_factor_wrong', 'Send the code that it shows now.')
      database().secondFactor = { totp: true, recovery_codes_left: 10 }
      persist()
      return HttpResponse.json({ codes: codes() })
    }),
  ),
  http.delete(
    '/v1/me/totp',
    signedIn(() => {
      database().secondFactor = { totp: false, recovery_codes_left: 0 }
      return done()
    }),
  ),
  http.post(
    '/v1/me/recovery-codes',
    signedIn(() => HttpResponse.json({ codes: codes() })),
  ),
]

/** The ceremonies need a real authenticator, which the tests of the real stack have. */
const passkeys = [
  http.get(
    '/v1/me/passkeys',
    signedIn(() => HttpResponse.json({ items: database().passkeys })),
  ),
  http.delete(
    '/v1/me/passkeys/:id',
    signedIn((_request, { id }) => {
      const db = database()
      db.passkeys = db.passkeys.filter((passkey) => passkey.id !== id)
      return done()
    }),
  ),
]

const members = [
  http.get(
    '/v1/organization/members',
    signedIn(() => HttpResponse.json({ items: database().members })),
  ),
  http.patch(
    '/v1/organization/members/:id',
    signedIn(async (request, { id }) => {
      const { role } = (await request.json()) as { role: Role }
      const member = database().members.find((each) => each.user_id === id)
      if (!member) return notFound('member')
      member.role = role
      persist()
      return HttpResponse.json(member)
    }),
  ),
  http.delete(
    '/v1/organization/members/:id',
    signedIn((_request, { id }) => {
      const db = database()
      db.members = db.members.filter((each) => each.user_id !== id)
      return done()
    }),
  ),
]

const invitations = [
  http.get(
    '/v1/organization/invitations',
    signedIn(() => HttpResponse.json({ items: database().invitations })),
  ),
  http.post(
    '/v1/organization/invitations',
    signedIn(async (request) => {
      const asked = (await request.json()) as NewInvitation
      if (!asked.email.includes('@')) return invalid('body.email', 'Not an e-mail address.')
      const db = database()
      if (db.members.some((member) => member.email === asked.email))
        return problem('member_already', 'Change the role of the member instead.')
      const now = Date.now()
      const invitation = {
        id: newId(),
        ...asked,
        created_at: new Date(now).toISOString(),
        expires_at: new Date(now + WEEK_MS).toISOString(),
      }
      db.invitations.unshift(invitation)
      persist()
      return HttpResponse.json(invitation, { status: 201 })
    }),
  ),
  http.delete(
    '/v1/organization/invitations/:id',
    signedIn((_request, { id }) => {
      const db = database()
      db.invitations = db.invitations.filter((each) => each.id !== id)
      return done()
    }),
  ),
  http.post('/v1/invitations/look', async ({ request }) => {
    const { token } = (await request.json()) as { token: string }
    if (token !== LINKS.invitation) return wrongLink()
    const invited = { organization_name: 'Example Ltd', email: 'new@example.com', role: 'developer' }
    return HttpResponse.json({ ...invited, has_account: false })
  }),
]

const audit = [
  http.get(
    '/v1/audit',
    signedIn((request) => page(seedAudit(Date.now()), request)),
  ),
]

export const people = [
  ...audit,
  ...email,
  ...passwords,
  ...sessions,
  ...secondFactor,
  ...passkeys,
  ...members,
  ...invitations,
]
