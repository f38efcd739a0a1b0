import { http, HttpResponse } from 'msw'
import type { ApiKey, Me, NewKey, Rotation } from '@/api'
import { database, newId, persist, reset } from '../db'
import { invalid, notFound, page, problem, refuseStranger, sentinel } from '../reply'

function whoIs(userId: string): Omit<Me, 'csrf_token'> {
  const { users, organization, projects } = database()
  const user = users.find((each) => each.id === userId)
  return {
    user: user
      ? { id: user.id, email: user.email, created_at: user.created_at, email_verified: user.email_verified }
      : null,
    organization,
    role: 'owner',
    permissions: ['administer', 'append', 'billing', 'manage', 'own', 'read', 'team', 'view'],
    memberships: [{ organization_id: organization.id, organization_name: organization.name, role: 'owner' }],
    projects: projects.toReversed(),
    viewed_by: null,
  }
}

export function startSession(userId: string) {
  const db = database()
  db.session = { user_id: userId, csrf_token: `csrf-${newId()}` }
  persist()
  return { ...whoIs(userId), csrf_token: db.session.csrf_token }
}

const signUp = http.post('/v1/signup', async ({ request }) => {
  const body = (await request.json()) as { email: string; password: string; organization: string }
  const failing = sentinel(body.organization)
  if (failing) return failing
  if (body.email === 'taken@example.com' || database().users.some((user) => user.email === body.email))
    return problem('email_taken', 'There is an account with this e-mail already. Log in instead.')
  if (body.password.length < 10) return invalid('body.password', 'Use at least 10 characters.')
  return HttpResponse.json(signUpAs(body), { status: 201 })
})

/** A new organization sees nothing of the seeded one. Its account starts empty, as in the service. */
export function signUpAs(body: { email: string; password: string; organization: string }) {
  reset()
  const db = database()
  const project = { id: newId(), name: 'default', created_at: new Date().toISOString() }
  const user = {
    id: newId(),
    email: body.email,
    password: body.password,
    created_at: project.created_at,
    email_verified: false,
  }
  Object.assign(db, {
    users: [...db.users, user],
    projects: [project],
    groups: [],
    keys: [],
    organizationKeys: [],
    members: [{ user_id: user.id, email: user.email, role: 'owner', joined_at: user.created_at, is_you: true }],
    invitations: [],
    invoices: [],
    payments: {},
    budgets: [],
  })
  db.organization = { id: newId(), name: body.organization, created_at: project.created_at, standing: 'active' }
  return { ...startSession(user.id), project }
}

const logIn = http.post('/v1/login', async ({ request }) => {
  const body = (await request.json()) as { email: string; password: string }
  const user = database().users.find((each) => each.email === body.email && each.password === body.password)
  if (!user) return problem('credentials_invalid', 'Check it for typing errors.')
  return HttpResponse.json(startSession(user.id))
})

const logOut = http.post('/v1/logout', () => {
  database().session = null
  persist()
  return new HttpResponse(null, { status: 204 })
})

const me = http.get('/v1/me', ({ request }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const { session } = database()
  return HttpResponse.json(session && { ...whoIs(session.user_id), csrf_token: session.csrf_token })
})

const createProject = http.post('/v1/projects', async ({ request }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const { name } = (await request.json()) as { name: string }
  const failing = sentinel(name)
  if (failing) return failing
  const db = database()
  if (db.projects.some((each) => each.name === name))
    return problem('name_taken', `There is a project "${name}" already.`)
  const project = { id: newId(), name, created_at: new Date().toISOString() }
  db.projects.push(project)
  persist()
  return HttpResponse.json(project, { status: 201 })
})

const deleteProject = http.delete('/v1/projects/:id', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const db = database()
  const index = db.projects.findIndex(({ id }) => id === params.id)
  if (index < 0) return notFound('project')
  if (db.groups.some(({ group }) => group.project_id === params.id))
    return problem('project_not_empty', 'The project has groups. Delete them first.')
  db.projects.splice(index, 1)
  persist()
  return new HttpResponse(null, { status: 204 })
})

const listKeys = http.get('/v1/projects/:id/keys', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  return page(
    database().keys.filter((key) => key.project_id === params.id),
    request,
  )
})

const createKey = http.post('/v1/projects/:id/keys', async ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const { name, scopes = ['append', 'read'], expires_at = null } = (await request.json()) as NewKey
  const failing = sentinel(name)
  if (failing) return failing
  const id = newId()
  const prefix = `qk_${id.slice(-6)}`
  const key: ApiKey = {
    id,
    project_id: String(params.id),
    name,
    prefix,
    scopes,
    created_at: new Date().toISOString(),
    last_used_at: null,
    expires_at,
    former_secret_until: null,
  }
  const db = database()
  db.keys.unshift(key)
  // A new key is used soon: empty groups of the project get their first entry shortly after.
  for (const { group, ...rest } of db.groups) {
    if (group.project_id !== params.id || rest.traffic) continue
    const mock = db.groups.find((each) => each.group.id === group.id)
    if (mock)
      mock.traffic = {
        since_ms: Date.now() + 3_000,
        mean_per_s: group.sla.rate_per_s * 0.6,
        reserved_per_s: group.sla.rate_per_s,
        seed: 5,
      }
  }
  persist()
  return HttpResponse.json({ ...key, secret: `${prefix}_3vJq9ZkT7mWcR2dYx8LhPn5sBf4uGa6e` }, { status: 201 })
})

const listOrganizationKeys = http.get('/v1/organization/keys', ({ request }) => {
  const refusal = refuseStranger(request)
  return refusal ?? page(database().organizationKeys, request)
})

const createOrganizationKey = http.post('/v1/organization/keys', async ({ request }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const usual = ['administer', 'append', 'manage', 'read']
  const { name, scopes = usual, expires_at = null } = (await request.json()) as NewKey
  const prefix = `qk_${newId().slice(-6)}`
  const made = { id: newId(), name, prefix, scopes, expires_at, created_at: new Date().toISOString() }
  const key = { ...made, last_used_at: null, former_secret_until: null }
  database().organizationKeys.unshift(key)
  persist()
  return HttpResponse.json({ ...key, secret: `${prefix}_3vJq9ZkT7mWcR2dYx8LhPn5sBf4uGa6e` }, { status: 201 })
})

const keyOf = (id: unknown) => [...database().keys, ...database().organizationKeys].find((each) => each.id === id)

const rotateKey = http.post('/v1/keys/:id/rotate', async ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const key = keyOf(params.id)
  if (!key) return problem('not_found', 'There is no such API key here.')
  const { grace_s = 86_400 } = (await request.json()) as Rotation
  const former_secret_until = new Date(Date.now() + grace_s * 1_000).toISOString()
  key.prefix = `qk_${newId().slice(-6)}`
  key.former_secret_until = grace_s > 0 ? former_secret_until : null
  persist()
  const { id, prefix } = key
  return HttpResponse.json({ id, prefix, former_secret_until, secret: `${prefix}_3vJq9ZkT7mWcR2dYx8LhPn5sBf4uGa6e` })
})

const revokeKey = http.delete('/v1/keys/:id', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const db = database()
  if (!keyOf(params.id)) return notFound('key')
  db.keys = db.keys.filter((key) => key.id !== params.id)
  db.organizationKeys = db.organizationKeys.filter((key) => key.id !== params.id)
  persist()
  return new HttpResponse(null, { status: 204 })
})

export const accounts = [
  signUp,
  logIn,
  logOut,
  me,
  createProject,
  deleteProject,
  listKeys,
  createKey,
  listOrganizationKeys,
  createOrganizationKey,
  rotateKey,
  revokeKey,
]
