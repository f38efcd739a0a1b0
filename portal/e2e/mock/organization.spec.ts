import { readFile } from 'node:fs/promises'
import { expect, expectAccessible, expectNoSidewaysScroll, openSignedIn, test } from '../support/portal'

test('an organization is exported, closed and reopened', async ({ page }) => {
  await openSignedIn(page, '/organization')
  const downloading = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download everything' }).click()
  const file = await downloading
  expect(file.suggestedFilename()).toBe('quorate-organization.jsonl')
  expect(await readFile(await file.path(), 'utf8')).toContain('"table":"projects"')

  await page.getByRole('button', { name: 'Close the organization' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel(/to confirm/).fill('Example')
  await expect(dialog.getByRole('button', { name: 'Close organization' })).toHaveAttribute('aria-disabled', 'true')
  await dialog.getByLabel(/to confirm/).fill('Example Ltd')
  await dialog.getByRole('button', { name: 'Close organization' }).click()
  await expect(page.getByText('This organization is closing')).toBeVisible()
  await page.goto('/members')
  await page.getByRole('link', { name: 'See why, and until when' }).click()
  await page.getByRole('button', { name: 'Reopen the organization' }).click()
  await expect(page.getByText('This organization is closing')).toHaveCount(0)
  await expect(page.getByRole('button', { name: 'Close the organization' })).toBeVisible()
})

test('the page fits a phone, and is accessible in both themes', async ({ page }) => {
  await page.setViewportSize({ width: 360, height: 740 })
  await openSignedIn(page, '/organization')
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  await expectNoSidewaysScroll(page)
  await expectAccessible(page)
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' })
  await expectAccessible(page, { coloursOnly: true })
})
