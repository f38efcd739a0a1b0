import { randomUUID } from 'node:crypto'
import { expect, test } from '../support/portal'
import { planOf } from './terraform'

const NAME = `files-${randomUUID().slice(0, 8)}`

test('a group is taken over by Terraform as it is, with a key that may manage it alone', async ({ page }) => {
  await page.goto('/signup')
  await page.getByLabel('E-mail').fill(`${NAME}@example.com`)
  await page.getByLabel('Password').fill(randomUUID())
  await page.getByLabel('Organization').fill(NAME)
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.getByLabel('Name').fill(NAME)
  await page.getByRole('radio', { name: /In memory/ }).check()
  await page.getByLabel('Rate to reserve', { exact: true }).fill('300')
  await expect(page.getByText('We can promise this')).toBeVisible()
  await page.getByRole('button', { name: 'Create group' }).click()
  await expect(page.getByText('Waiting for the first append')).toBeVisible()

  await page.getByRole('link', { name: 'Settings' }).click()
  await page.getByText('Show the configuration').click()
  const configuration = await page.getByRole('region', { name: 'Terraform configuration' }).textContent()

  await page.getByRole('link', { name: 'API keys' }).click()
  await page.getByRole('button', { name: 'New API key' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name', { exact: true }).fill('terraform')
  for (const scope of ['Append', 'Read']) await dialog.getByRole('checkbox', { name: scope }).uncheck()
  await dialog.getByRole('checkbox', { name: 'Manage' }).check()
  await dialog.getByRole('radio', { name: 'Some groups' }).check()
  await dialog.getByLabel('Names of groups').fill(NAME)
  await dialog.getByRole('button', { name: 'Make key' }).click()
  const apiKey = await dialog.getByTestId('api-key').textContent()

  const plan = await planOf(String(configuration), String(apiKey))
  expect(plan).toContain('Plan: 1 to import, 0 to add, 0 to change, 0 to destroy.')
})
