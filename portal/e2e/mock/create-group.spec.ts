import { expect, openSignedIn, PROJECTS, test } from '../support/portal'

const PATH = `/projects/${PROJECTS.production}/groups/new`

test.beforeEach(async ({ page }) => {
  await openSignedIn(page, PATH)
})

test('price and answer follow the typing', async ({ page }) => {
  const panel = page.getByRole('complementary', { name: 'Price and admission' })
  await expect(panel.getByText('We can promise this')).toBeVisible()
  const price = panel.getByTestId('monthly-price')
  const before = await price.textContent()
  await page.getByLabel('Rate to reserve', { exact: true }).fill('50000')
  await expect(price).not.toHaveText(String(before))
  await page.getByLabel('Rate to reserve', { exact: true }).fill('')
  await expect(panel.getByText('Complete the form for a price and an answer.')).toBeVisible()
})

test('a refusal names what is scarce and offers what fits', async ({ page }) => {
  await page.getByRole('radio', { name: '7' }).check()
  await expect(page.getByText('Scarce: servers.')).toBeVisible()
  await expect(page.getByRole('button', { name: 'Create group' })).toHaveAttribute('aria-disabled', 'true')
  await page.getByRole('button', { name: 'Use an SLA that fits' }).click()
  await expect(page.getByRole('radio', { name: '5' })).toBeChecked()
  await expect(page.getByText('We can promise this')).toBeVisible()
})

test('a refusal at the last moment is shown in the same place', async ({ page }) => {
  await page.getByLabel('Name').fill('fail-refused')
  await expect(page.getByText('We can promise this')).toBeVisible()
  await page.getByRole('button', { name: 'Create group' }).click()
  await expect(page.getByText('We cannot promise this now')).toBeVisible()
  await page.getByRole('button', { name: 'Use an SLA that fits' }).click()
  await expect(page.getByLabel('Rate to reserve', { exact: true })).toHaveValue('2500')
})

test('a taken name is said at the field, and nothing is lost', async ({ page }) => {
  await page.getByLabel('Name').fill('orders')
  await page.getByRole('radio', { name: /In memory/ }).check()
  await page.getByRole('button', { name: 'Create group' }).click()
  await expect(page.getByText('There is a group "orders" in this project already.')).toBeVisible()
  await expect(page.getByRole('radio', { name: /In memory/ })).toBeChecked()
  await page.getByLabel('Name').fill('orders-2')
  await page.getByRole('button', { name: 'Create group' }).click()
  await expect(page.getByRole('heading', { name: 'orders-2' })).toBeVisible()
})

test('no answer from the service loses nothing', async ({ page }) => {
  await page.getByLabel('Name').fill('fail-offline')
  await page.getByRole('button', { name: 'Create group' }).click()
  await expect(page.getByRole('alert')).toContainText('No answer from the service')
  await expect(page.getByLabel('Name')).toHaveValue('fail-offline')
})
