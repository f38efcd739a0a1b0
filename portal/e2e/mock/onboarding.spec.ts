import { expect, test } from '../support/portal'

test('from sign-up to the first committed entry in at most six clicks', async ({ page }) => {
  await page.addInitScript(() => {
    const counting = globalThis as unknown as { clicks: number }
    counting.clicks = 0
    addEventListener('click', (event) => (counting.clicks += event.detail > 0 ? 1 : 0), true)
  })
  await page.goto('/signup')
  await page.getByLabel('E-mail').fill('new@example.com')
  await page.getByLabel('Password').fill('four unrelated words')
  await page.getByLabel('Organization').fill('New Ltd')
  await page.getByRole('button', { name: 'Create account' }).click()

  await expect(page.getByRole('heading', { name: 'Create your first group' })).toBeVisible()
  await page.getByLabel('Name').fill('orders')
  await expect(page.getByText('We can promise this')).toBeVisible()
  await page.getByRole('button', { name: 'Create group' }).click()

  await expect(page.getByText('Waiting for the first append')).toBeVisible()
  await page.getByRole('button', { name: 'Make an API key' }).click()
  const key = await page.getByTestId('api-key').textContent()
  await expect(page.getByRole('region', { name: 'Python snippet' })).toContainText(String(key))
  await page.getByRole('button', { name: 'Copy Python snippet' }).click()

  await expect(page.getByText('Your first entry is committed')).toBeVisible()
  expect(await page.evaluate(() => (globalThis as unknown as { clicks: number }).clicks)).toBeLessThanOrEqual(6)

  await page.getByRole('link', { name: 'See it live' }).click()
  await expect(page.getByRole('img', { name: /Throughput now: [1-9]/ })).toBeVisible()
})

test('snippets in every language', async ({ page }) => {
  await page.goto('/signup')
  await page.getByLabel('E-mail').fill('new@example.com')
  await page.getByLabel('Password').fill('four unrelated words')
  await page.getByLabel('Organization').fill('New Ltd')
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.getByLabel('Name').fill('orders')
  await page.getByRole('button', { name: 'Create group' }).click()
  await page.getByRole('tab', { name: 'JavaScript' }).click()
  await expect(page.getByRole('region', { name: 'JavaScript snippet' })).toContainText('connectGroup')
  await page.getByRole('tab', { name: 'curl' }).click()
  await expect(page.getByRole('region', { name: 'curl snippet' })).toContainText('/handle')
})

test('sign-up says what is wrong, field by field', async ({ page }) => {
  await page.goto('/signup')
  await page.getByRole('button', { name: 'Create account' }).click()
  await expect(page.getByText('Enter an e-mail address, like name@company.com.')).toBeVisible()
  await expect(page.getByText('Use at least 10 characters.')).toBeVisible()
  await page.getByLabel('E-mail').fill('taken@example.com')
  await page.getByLabel('Password').fill('four unrelated words')
  await page.getByLabel('Organization').fill('New Ltd')
  await page.getByRole('button', { name: 'Create account' }).click()
  await expect(page.getByText('There is an account with this e-mail. Log in instead.')).toBeVisible()
})

test('sign-up keeps what was typed when the service does not answer', async ({ page }) => {
  await page.goto('/signup')
  await page.getByLabel('E-mail').fill('new@example.com')
  await page.getByLabel('Password').fill('four unrelated words')
  await page.getByLabel('Organization').fill('fail-offline')
  await page.getByRole('button', { name: 'Create account' }).click()
  await expect(page.getByRole('alert')).toContainText('No answer from the service')
  await expect(page.getByLabel('E-mail')).toHaveValue('new@example.com')
  await expect(page.getByLabel('Password')).toHaveValue('four unrelated words')
})
