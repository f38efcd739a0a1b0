import { http, HttpResponse } from 'msw'
import type { GroupSettings } from '@/api'
import { database, persist } from '../db'
import { notFound, problem, refuseStranger } from '../reply'

const taken = () =>
  problem('name_taken', 'Another one has this name.', {
    errors: [{ field: 'name', message: 'Another one has this name.' }],
  })

/** Names of projects and groups, and groups that are protected from deletion. */
export const settings = [
  http.put('/v1/projects/:id/settings', async ({ request, params }) => {
    const refusal = refuseStranger(request)
    if (refusal) return refusal
    const { projects } = database()
    const project = projects.find(({ id }) => id === params.id)
    if (!project) return notFound('project')
    const { name } = (await request.json()) as { name: string }
    if (projects.some((each) => each !== project && each.name === name)) return taken()
    project.name = name
    persist()
    return HttpResponse.json(project)
  }),
  http.put('/v1/groups/:id/settings', async ({ request, params }) => {
    const refusal = refuseStranger(request)
    if (refusal) return refusal
    const { groups } = database()
    const found = groups.find(({ group }) => group.id === params.id)
    if (!found) return notFound('group')
    const { name, deletion_protection = false } = (await request.json()) as GroupSettings
    const siblings = groups.filter(({ group }) => group.project_id === found.group.project_id && found.group !== group)
    if (siblings.some(({ group }) => group.name === name)) return taken()
    found.group = { ...found.group, name, deletion_protection }
    persist()
    return HttpResponse.json(found.group, { headers: { etag: '"4"' } })
  }),
]
