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
