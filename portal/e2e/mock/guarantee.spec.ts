import { expect, openSignedIn, PROJECTS, test } from '../support/portal'

test('a guarantee is shared, shown with its groups, and taken back', async ({ page }) => {
  await openSignedIn(page, `/projects/${PROJECTS.staging}/guarantee`)
  await page.getByRole('button', { name: 'Share a guarantee' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Shared by all groups').fill('9,000,000')
  await expect(dialog.getByText('Does not fit now')).toBeVisible()
  await dialog.getByRole('button', { name: /^Use 2,000,000/ }).click()
  await expect(dialog.getByRole('status')).toContainText('Fits now')
  await dialog.getByLabel('Shared by all groups').fill('250,000')
  await expect(dialog.getByRole('status')).toContainText('a month')
  await dialog.getByRole('button', { name: 'Share it' }).click()
  await expect(page.getByText('250,000 tokens/s')).toBeVisible()

  await page.getByRole('button', { name: 'Take back' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Take back' }).click()
  await expect(page.getByRole('heading', { name: 'No guarantee yet' })).toBeVisible()
})

test('the owner chooses who comes first', async ({ page }) => {
  await openSignedIn(page, `/projects/${PROJECTS.production}/guarantee`)
  await expect(page.getByRole('meter', { name: 'Shared tokens in use' })).toBeVisible()
  await expect(page.getByRole('row', { name: /orders/ })).toContainText('/s')
  await page.getByRole('button', { name: 'Change' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Divided among groups that want it').selectOption('By rank')
  await dialog.getByLabel('Rank of orders').fill('0')
  await expect(dialog.getByRole('button', { name: 'Change it' })).toHaveAttribute('aria-disabled', 'true')
  await dialog.getByLabel('Rank of orders').fill('1')
  await dialog.getByRole('button', { name: 'Change it' }).click()
  await expect(dialog).toHaveCount(0)
  await expect(page.getByText('By rank')).toBeVisible()
})
