import { randomUUID } from 'node:crypto'
import type { Locator, Page } from '@playwright/test'
import { expect, test } from '../support/portal'
import { keep } from './figures'
import { runProgram } from './program'

/** A person's pace: 50 words a minute, a look before each click, and half a minute with the terminal. */
const KEY_MS = 240
const LOOK_MS = 2_500
const TERMINAL_MS = 30_000
const GOAL_S = 180
const CLICKS_MAX = 6

class Person {
  clicks = 0
  constructor(private readonly page: Page) {}

  async click(what: Locator): Promise<void> {
    await this.page.waitForTimeout(LOOK_MS)
    await what.click()
    this.clicks += 1
  }

  /** Comes to the field by the tabulator key. */
  async type(field: Locator, text: string): Promise<void> {
    await this.page.waitForTimeout(LOOK_MS / 2)
    await field.focus()
    await field.pressSequentially(text, { delay: KEY_MS })
  }
}

test('from the first page to the first append seen live, at a person’s pace', async ({ page, baseURL }) => {
  test.setTimeout(GOAL_S * 1_000 + 60_000)
  const name = `pace-${randomUUID().slice(0, 6)}`
  const person = new Person(page)
  const began = Date.now()
  await page.goto('/')
  await person.click(page.getByRole('link', { name: /Create an account|Sign up/ }).first())
  await person.type(page.getByLabel('E-mail'), `${name}@example.com`)
  await person.type(page.getByLabel('Password'), 'correct horse battery')
  await person.type(page.getByLabel('Organization'), name)
  await person.click(page.getByRole('button', { name: 'Create account' }))
  await person.type(page.getByLabel('Name'), 'orders')
  await expect(page.getByText('We can promise this')).toBeVisible()
  await person.click(page.getByRole('button', { name: 'Create group' }))
  await person.click(page.getByRole('button', { name: 'Make an API key' }))
  const apiKey = (await page.getByTestId('api-key').textContent()) ?? ''
  const groupId = /groups\/([\da-f-]{36})/.exec(page.url())?.[1] ?? ''
  await person.click(page.getByRole('button', { name: /^Copy/ }).last())
  await page.waitForTimeout(TERMINAL_MS)
  const program = runProgram({ apiUrl: new URL(String(baseURL)).origin, apiKey, groupId }, 5)
  await expect(page.getByText('Your first entry is committed')).toBeVisible({ timeout: 30_000 })
  const took = (Date.now() - began) / 1_000
  await program
  const note = `50 words a minute, ${String(LOOK_MS / 1_000)} s before each click, ${String(TERMINAL_MS / 1_000)} s with the terminal`
  await keep([
    { name: 'first_append_s', value: took, unit: 's', goal: GOAL_S, note },
    { name: 'first_append_clicks', value: person.clicks, unit: 'clicks', goal: CLICKS_MAX },
  ])
  expect(took).toBeLessThanOrEqual(GOAL_S)
  expect(person.clicks).toBeLessThanOrEqual(CLICKS_MAX)
})
