import type { Page } from '@playwright/test'
import { expect, expectAccessible, expectNoSidewaysScroll, test } from '../support/portal'

/** Opens the status page in one of the mock service's stories. */
async function open(page: Page, story: string): Promise<void> {
  await page.addInitScript((value) => sessionStorage.setItem('quorate.mock.status', value), story)
  await page.goto('/status')
}

const STORIES: [string, RegExp][] = [
  ['unknown', /Not everything can be measured now/],
  ['empty', /Nothing has been measured yet/],
  ['away', /Measurements cannot be read now/],
  ['error', /We could not load the status/],
]

test('the status in light, in dark and on a phone', async ({ page }) => {
  test.slow()
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  await open(page, 'outage')
  await expect(page.getByText('Part of the service is down')).toBeVisible()
  await expectAccessible(page)
  await page.emulateMedia({ colorScheme: 'dark' })
  await expectAccessible(page, { coloursOnly: true })
  await page.setViewportSize({ width: 390, height: 844 })
  await expectNoSidewaysScroll(page)
})

for (const [story, told] of STORIES) {
  test(`the status in the dark, on a phone: ${story}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' })
    await page.setViewportSize({ width: 390, height: 844 })
    await open(page, story)
    await expect(page.getByText(told).first()).toBeVisible()
    await expect(page.getByText('No incident was told')).toHaveCount(story === 'empty' ? 1 : 0)
    await expectAccessible(page)
    await expectNoSidewaysScroll(page)
  })
}

test('the status is reached from the sign-in page, without a session', async ({ page }) => {
  await page.goto('/login')
  await page.getByRole('link', { name: 'Service status' }).click()
  await expect(page).toHaveURL('/status')
  await expect(page.getByRole('heading', { level: 1, name: 'Everything works' })).toBeVisible()
  await expect(page.getByRole('region', { name: /^Region/ })).toHaveCount(2)
  await expect(page.getByRole('link', { name: 'Feed' })).toHaveAttribute('href', '/v1/status/feed')
})

test('each day tells its story to a pointer and to the keyboard', async ({ page }) => {
  await open(page, 'calm')
  const days = page.getByRole('slider', { name: 'Appends and reads: days' }).first()
  await days.focus()
  await page.keyboard.press('Home')
  await expect(days).toHaveAttribute('aria-valuetext', /: not measured$/)
  await expect(page.getByText(/: not measured$/)).toBeVisible()
  await page.keyboard.press('End')
  await expect(days).toHaveAttribute('aria-valuetext', /of minutes good$/)
  await page.keyboard.press('ArrowLeft')
  await expect(days).toHaveAttribute('aria-valuenow', '88')
  await page.getByRole('heading', { level: 1 }).click()
  await expect(page.getByText(/in 90 days$/).first()).toBeVisible()
  await days.hover({ position: { x: 2, y: 10 } })
  await expect(page.getByText(/: not measured$/)).toBeVisible()
})

test('open incidents come first, past ones open on demand', async ({ page }) => {
  await open(page, 'outage')
  const incident = page.getByRole('article')
  await expect(incident).toContainText('Groups cannot be created in eu-north')
  await expect(incident.getByRole('listitem').first()).toContainText('Cause identified')
  await expect(incident.locator('time').first()).toHaveAttribute('title', / UTC$/)
  const past = page.getByRole('group').filter({ hasText: 'Usage was shown late' })
  await expect(past.getByText('All usage is stored.')).toBeHidden()
  await past.getByText('Usage was shown late').click()
  await expect(past.getByText('All usage is stored.')).toBeVisible()
})
