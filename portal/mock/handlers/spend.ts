import { http, HttpResponse } from 'msw'
import type { Commitment, NewBudget, NewCommitment } from '@/api'
import { database, newId, persist } from '../db'
import { invalid, notFound, page, refuseStranger } from '../reply'
import { budgetOf, daysOf, spendOf, withAlerts } from '../spend'

const spend = http.get(
  '/v1/spend',
  ({ request }) => refuseStranger(request) ?? HttpResponse.json(spendOf(database(), Date.now())),
)

const days = http.get('/v1/spend/days', ({ request }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const now = Date.now()
  return HttpResponse.json({
    month: new Date(now).toISOString().slice(0, 7),
    currency: 'USD',
    days: daysOf(database(), now),
  })
})

const listBudgets = http.get('/v1/budgets', ({ request }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const db = database()
  return page(
    db.budgets.map((budget) => withAlerts(db, budget, Date.now())),
    request,
  )
})

const putBudget = http.put('/v1/budgets', async ({ request }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const asked = (await request.json()) as NewBudget
  if (asked.monthly_micros < 1) return invalid('body.monthly_micros', 'Must be at least 1.')
  const db = database()
  const project_id = asked.project_id ?? null
  if (project_id !== null && !db.projects.some(({ id }) => id === project_id)) return notFound('project')
  const index = db.budgets.findIndex((each) => each.project_id === project_id)
  const budget = budgetOf(db, asked, db.budgets[index]?.id ?? newId(), Date.now())
  if (index < 0) db.budgets.unshift(budget)
  else db.budgets[index] = budget
  persist()
  return HttpResponse.json(withAlerts(db, budget, Date.now()))
})

const deleteBudget = http.delete('/v1/budgets/:id', ({ request, params }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const db = database()
  const index = db.budgets.findIndex(({ id }) => id === params.id)
  if (index < 0) return notFound('budget')
  db.budgets.splice(index, 1)
  persist()
  return new HttpResponse(null, { status: 204 })
})

const OFFERS = [
  { months: 12, discount_percent: 20 },
  { months: 36, discount_percent: 35 },
]

const listCommitments = http.get('/v1/commitments', ({ request }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const db = database()
  const reserved = db.groups.reduce((sum, { group }) => sum + group.price.monthly_micros, 0)
  return HttpResponse.json({
    items: db.commitments,
    offers: OFFERS,
    currency: 'USD',
    reserved_monthly_micros: reserved,
  })
})

const makeCommitment = http.post('/v1/commitments', async ({ request }) => {
  const refusal = refuseStranger(request)
  if (refusal) return refusal
  const asked = (await request.json()) as NewCommitment
  const offer = OFFERS.find(({ months }) => months === asked.months)
  if (!offer) return invalid('months', 'Must be 12 or 36.')
  const now = new Date()
  const begins = (months: number) => new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1 + months, 1))
  const made: Commitment = {
    ...offer,
    id: newId(),
    monthly_micros: asked.monthly_micros,
    start: begins(0).toISOString(),
    end: begins(offer.months).toISOString(),
    created_at: now.toISOString(),
  }
  database().commitments.unshift(made)
  persist()
  return HttpResponse.json(made, { status: 201 })
})

export const spending = [spend, days, listBudgets, putBudget, deleteBudget, listCommitments, makeCommitment]
