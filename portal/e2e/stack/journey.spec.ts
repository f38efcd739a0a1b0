import { randomUUID } from 'node:crypto'
import { expect, expectAccessible, test } from '../support/portal'
import { runProgram } from './program'

const NAME = `journey-${randomUUID().slice(0, 8)}`
const RATE_PER_S = '500'
const RESIZED_PER_S = '800'

test('sign up, create a group, append with an SDK, see it live, see it on the invoice, resize', async ({
  page,
  baseURL,
}) => {
  if (!baseURL) throw new Error('Set QUORATE_URL to the address of a running stack.')
  const refused: string[] = []
  page.on('console', (message) => {
    if (/Content Security Policy|script-src/.test(message.text())) refused.push(message.text())
  })

  await page.goto('/signup')
  await page.getByLabel('E-mail').fill(`${NAME}@example.com`)
  await page.getByLabel('Password').fill(randomUUID())
  await page.getByLabel('Organization').fill(NAME)
  await page.getByRole('button', { name: 'Create account' }).click()

  await page.getByLabel('Name').fill(NAME)
  await page.getByRole('radio', { name: /Persistent/ }).check()
  await page.getByLabel('Rate to reserve', { exact: true }).fill(RATE_PER_S)
  await expect(page.getByText('We can promise this')).toBeVisible()
  await page.getByRole('button', { name: 'Create group' }).click()

  await expect(page.getByText('Waiting for the first append')).toBeVisible()
  await page.getByRole('button', { name: 'Make an API key' }).click()
  const apiKey = await page.getByTestId('api-key').textContent()
  const groupId = /groups\/([\da-f-]{36})/.exec(page.url())?.[1]
  if (!apiKey || !groupId) throw new Error('no key, or no group in the address')

  const program = runProgram({ apiUrl: new URL(baseURL).origin, apiKey, groupId })
  // A failing program ends the test at once, with its output.
  const committed = expect(page.getByText('Your first entry is committed')).toBeVisible({ timeout: 30_000 })
  await Promise.race([committed, program.then(() => committed)])

  await page.getByRole('link', { name: 'See it live' }).click()
  await expect(page.getByRole('img', { name: /Throughput now: [1-9]/ })).toBeVisible()
  const entries = page.getByTestId('committed-entries')
  const before = await entries.textContent()
  await expect(entries).not.toHaveText(String(before))
  await expect(page.getByRole('img', { name: /Ring of epoch \d+: .* head, alive; .* tail, alive/ })).toBeVisible()
  await expectAccessible(page)

  const groupPage = page.url()
  const acked = Number(await program).toLocaleString('en')
  await expect(entries).toHaveText(acked)

  await expect(async () => {
    await page.goto('/invoices')
    const lines = page.getByRole('table', { name: NAME })
    await expect(lines).toContainText('Reservation', { timeout: 3_000 })
    await expect(lines).toContainText(`${acked} entries`, { timeout: 3_000 })
  }).toPass({ timeout: 60_000 })

  await page.goto(groupPage)
  await page.getByRole('link', { name: 'Settings' }).click()
  await page.getByRole('link', { name: 'Resize' }).click()
  await page.getByLabel('Rate to reserve', { exact: true }).fill(RESIZED_PER_S)
  await expect(page.getByText(/more than now/)).toBeVisible()
  await page.getByRole('button', { name: 'Resize group' }).click()
  await expect(page).toHaveURL(/\/settings$/)
  await expect(page.getByText(`${RESIZED_PER_S}/s`, { exact: true })).toBeVisible()
  expect(refused, 'nothing is against the content security policy').toEqual([])
})
