import { http, HttpResponse } from 'msw'
import type { ProviderAnswer, ProviderLogin } from '@/api'
import { database, newId, persist } from '../db'
import { notFound, problem, refuseStranger } from '../reply'
import { signUpAs, startSession } from './accounts'

/** The provider's word: everybody is this person there. */
const PROVIDER = { id: 'acme', name: 'Acme' }
const EMAIL = 'you@acme.example'
const CODE = 'mock-code'
const TOTP = '123456'

const begin = () => HttpResponse.json({ url: `/login/return?code=${CODE}&state=${newId()}` })
const isWrong = (answer: ProviderAnswer) => answer.code !== CODE
const refused = () => problem('identity_refused', 'Begin again, in the same browser.')

export const identities = [
  http.get('/v1/identity-providers', () => HttpResponse.json({ items: [PROVIDER] })),
  http.post('/v1/login/provider/begin', begin),
  http.post('/v1/login/provider', async ({ request }) => {
    const body = (await request.json()) as ProviderLogin
    const db = database()
    const user = db.users[0]
    if (isWrong(body) || !user) return refused()
    const answered = (outcome: string, me: unknown = null) => HttpResponse.json({ outcome, email: EMAIL, me })
    if (db.identities.length === 0) return answered('account_needed')
    if (db.secondFactor.totp && !body.second_factor) return answered('second_factor_required')
    if (db.secondFactor.totp && body.second_factor !== TOTP)
      return problem('second_factor_wrong', 'Send the code that it shows now.')
    return answered('logged_in', startSession(user.id))
  }),
  http.post('/v1/signup/provider', async ({ request }) => {
    const { organization } = (await request.json()) as { organization: string }
    return HttpResponse.json(signUpAs({ email: EMAIL, password: newId(), organization }), { status: 201 })
  }),
  http.get('/v1/me/identities', ({ request }) => {
    return refuseStranger(request) ?? HttpResponse.json({ items: database().identities })
  }),
  http.post('/v1/me/identities/begin', ({ request }) => refuseStranger(request) ?? begin()),
  http.post('/v1/me/identities', async ({ request }) => {
    const refusal = refuseStranger(request)
    if (refusal) return refusal
    if (isWrong((await request.json()) as ProviderAnswer)) return refused()
    const identity = {
      id: newId(),
      provider: PROVIDER.id,
      provider_name: PROVIDER.name,
      email: EMAIL,
      created_at: new Date().toISOString(),
      last_used_at: null,
    }
    database().identities.push(identity)
    persist()
    return HttpResponse.json(identity, { status: 201 })
  }),
  http.delete('/v1/me/identities/:id', ({ request, params }) => {
    const refusal = refuseStranger(request)
    if (refusal) return refusal
    const db = database()
    if (!db.identities.some(({ id }) => id === params.id)) return notFound('identity')
    db.identities = db.identities.filter(({ id }) => id !== params.id)
    persist()
    return new HttpResponse(null, { status: 204 })
  }),
]
