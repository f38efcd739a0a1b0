import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, expectAccessible, test } from '../support/portal'

const OPERATOR = 'ada@example.com'

/** As an operator makes one on the API's machine. */
function operatorToken(): string {
  const state = process.env.QUORATE_STATE
  if (!state) throw new Error('Set QUORATE_STATE to the folder of the running stack.')
  const python = process.env.QUORATE_PYTHON ?? 'python3'
  const env = {
    ...process.env,
    DATABASE_URL: 'postgresql://nobody@127.0.0.1/unused',
    QUORATE_SECRET_FILE: join(state, 'secrets', 'api-secret'),
  }
  const args = ['-m', 'quorate_api.main', 'operator-session', '--name', OPERATOR]
  return execFileSync(python, args, { env, encoding: 'utf8' }).trim()
}

test('an operator drains a server of the real fleet, calls it off, and is in the log', async ({ page }) => {
  await page.goto('/operator/login')
  await page.getByLabel('Token').fill(operatorToken())
  await page.getByRole('button', { name: 'Open the console' }).click()
  await expect(page.getByText(`${OPERATOR}, ends in`)).toBeVisible()
  const row = page.getByRole('row', { name: /^s5/ })
  await expect(row).toContainText('Alive')
  await expect(page.getByText(/is the scarcest, with \d+ % free/)).toBeVisible()
  await expectAccessible(page)
  await row.getByRole('button', { name: 'Drain s5' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Drain server' }).click()
  await expect(row).toContainText(/Drain(ing|ed)/)
  await row.getByRole('button', { name: 'Call off s5' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Call off the drain' }).click()
  await expect(row).toContainText('Alive')
  await page.getByRole('link', { name: 'Organizations' }).click()
  await expect(page.getByRole('heading', { name: 'Organizations', level: 1 })).toBeVisible()
  await page.getByRole('link', { name: 'Audit log' }).click()
  await expect(page.getByRole('row', { name: /call off drain/ }).first()).toContainText(OPERATOR)
  await expect(page.getByRole('row', { name: /drain server/ }).first()).toContainText('/v1/operator/servers/')
})

test('a customer asks for more, an operator grants it, looks in, and is in both logs', async ({ page, browser }) => {
  const company = `Console ${String(Date.now())}`
  await page.goto('/signup')
  await page.getByLabel('E-mail').fill(`owner-${String(Date.now())}@example.com`)
  await page.getByLabel('Password').fill('correct horse battery')
  await page.getByLabel('Organization').fill(company)
  await page.getByRole('button', { name: 'Create account' }).click()
  await expect(page).toHaveURL(/groups\/new/)
  await page.goto('/quotas')
  await page.getByRole('button', { name: 'Ask for more: Projects' }).click()
  const asking = page.getByRole('dialog')
  await asking.getByLabel('Projects').fill('77')
  await asking.getByLabel('Your plan').fill('One project for each team.')
  await asking.getByRole('button', { name: 'Ask' }).click()
  await expect(page.getByText('77 asked for')).toBeVisible()

  const context = await browser.newContext()
  const console = await context.newPage()
  await console.goto('/operator/login')
  await console.getByLabel('Token').fill(operatorToken())
  await console.getByRole('button', { name: 'Open the console' }).click()
  await console.getByRole('link', { name: 'Organizations' }).click()
  const waiting = console.getByRole('list', { name: 'Requests for more' }).getByRole('listitem')
  await waiting.filter({ hasText: company }).getByRole('button', { name: 'Set' }).click()
  await console.getByRole('dialog').getByRole('button', { name: 'Set' }).click()
  await expect(waiting.filter({ hasText: company })).toHaveCount(0)
  await page.reload()
  await expect(page.getByText('of 77')).toBeVisible()

  await console.getByLabel('Search').fill(company)
  await console
    .getByRole('row', { name: new RegExp(company) })
    .getByRole('link')
    .click()
  await console.getByRole('button', { name: 'View as a member' }).click()
  await console.getByLabel('Reason').fill('Ticket 4711')
  const opened = context.waitForEvent('page')
  await console.getByRole('dialog').getByRole('button', { name: 'View', exact: true }).click()
  const view = await opened
  await expect(view.getByText(`You see ${company} as ${OPERATOR}`)).toBeVisible()
  await view.getByRole('link', { name: 'Quotas' }).click()
  await expect(view.getByText('of 77')).toBeVisible()
  await expect(view.getByRole('button', { name: /Ask for more/ })).toHaveCount(0)
  await expectAccessible(view)
  await view.getByRole('button', { name: 'End' }).click()
  await expect(view).toHaveURL(/\/operator/)

  await console.getByRole('link', { name: 'Admissions' }).click()
  await expect(console.getByRole('heading', { name: 'Admissions', level: 1 })).toBeVisible()
  await page.goto('/audit')
  await expect(page.getByText('looked at the organization, as an operator')).toBeVisible()
  await context.close()
})
