import { expect, openSignedIn, PROJECTS, test } from '../support/portal'

test('a key is shown once, and can be revoked', async ({ page }) => {
  await openSignedIn(page, `/projects/${PROJECTS.production}/keys`)
  await page.getByRole('button', { name: 'New API key' }).click()
  const making = page.getByRole('dialog')
  await making.getByLabel('Name').fill('worker')
  await making.getByRole('button', { name: 'Make key' }).click()
  await expect(making.getByTestId('api-key')).toHaveText(/^qk_/)
  await making.getByRole('button', { name: 'I have kept it' }).click()
  await expect(page.getByRole('row', { name: /worker/ })).toContainText('Never')
  await expect(page.getByTestId('api-key')).toHaveCount(0)

  await page.getByRole('button', { name: 'Revoke worker' }).click()
  await page.getByRole('dialog', { name: 'Revoke worker?' }).getByRole('button', { name: 'Revoke key' }).click()
  await expect(page.getByRole('row', { name: /worker/ })).toHaveCount(0)
})

test('a key that could not be made keeps its name in the form', async ({ page }) => {
  await openSignedIn(page, `/projects/${PROJECTS.production}/keys`)
  await page.getByRole('button', { name: 'New API key' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('fail-503')
  await dialog.getByRole('button', { name: 'Make key' }).click()
  await expect(dialog.getByRole('alert')).toContainText('The coordinator does not answer')
  await expect(dialog.getByLabel('Name')).toHaveValue('fail-503')
})

test('the keyboard alone is enough', async ({ page }) => {
  await openSignedIn(page, `/projects/${PROJECTS.staging}/keys`)
  await expect(page.getByRole('heading', { name: 'No API keys yet' })).toBeVisible()
  await page.getByRole('button', { name: 'New API key' }).focus()
  await page.keyboard.press('Enter')
  await expect(page.getByRole('dialog')).toBeVisible()
  await page.getByRole('dialog').getByLabel('Name').focus()
  await page.keyboard.type('from the keyboard')
  await page.keyboard.press('Enter')
  await expect(page.getByTestId('api-key')).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(page.getByRole('dialog')).toHaveCount(0)
  await expect(page.getByRole('row', { name: /from the keyboard/ })).toBeVisible()
})
