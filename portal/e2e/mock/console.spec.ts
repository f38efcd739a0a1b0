import {
  expect,
  expectAccessible,
  expectNoSidewaysScroll,
  INVOICE,
  openConsole,
  openSignedIn,
  test,
} from '../support/portal'

test('the log of admissions tells how often the fleet refused, and why', async ({ page }) => {
  await openConsole(page)
  await page.getByRole('link', { name: 'Admissions' }).click()
  const reasons = page.getByRole('listitem').filter({ hasText: 'Too little room: storage io' })
  await expect(reasons).toContainText('7')
  const rows = page.getByRole('table', { name: 'Admissions' }).getByRole('row')
  await expect(rows).toHaveCount(5)
  await expect(rows.nth(1)).toContainText('A group “group-0”, 20,000/s')
  await expect(rows.nth(1)).toContainText('410,256/s would fit')
  await page.getByRole('radio', { name: 'Refused' }).check()
  await expect(rows).toHaveCount(3)
  await expectAccessible(page)
  await page.setViewportSize({ width: 390, height: 844 })
  await expectNoSidewaysScroll(page)
})

test('a request for more is granted, and a quota is set back', async ({ page }) => {
  await openConsole(page)
  await page.getByRole('link', { name: 'Organizations' }).click()
  const waiting = page.getByRole('list', { name: 'Requests for more' })
  await expect(waiting).toContainText('20,000,000')
  await waiting.getByRole('link', { name: 'Example Ltd' }).click()
  const quota = page.getByRole('list', { name: 'Quotas' }).getByRole('listitem').filter({ hasText: 'total_rate_per_s' })
  await expect(quota).toContainText('20,000,000 asked for')
  await page.getByRole('button', { name: 'Set total_rate_per_s' }).click()
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByLabel('total_rate_per_s')).toHaveValue('20000000')
  await expectAccessible(page)
  await dialog.getByRole('button', { name: 'Set' }).click()
  await expect(quota).toContainText('of 20,000,000')
  await expect(quota).toContainText('set by operators')
  await quota.getByRole('button', { name: 'Use the default of total_rate_per_s' }).click()
  await expect(quota).toContainText('of 10,000,000')
  await expectAccessible(page)
  await page.setViewportSize({ width: 390, height: 844 })
  await expectNoSidewaysScroll(page)
})

test('an organization is looked at in another tab, with a reason', async ({ page, context }) => {
  await openConsole(page)
  await page.getByRole('link', { name: 'Organizations' }).click()
  await page
    .getByRole('row', { name: /Example Ltd/ })
    .getByRole('link')
    .click()
  await page.getByRole('button', { name: 'View as a member' }).click()
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByRole('button', { name: 'View' })).toHaveAttribute('aria-disabled', 'true')
  await dialog.getByLabel('Reason').fill('Ticket 4711')
  const opened = context.waitForEvent('page')
  const asked = context.waitForEvent('request', (request) => new URL(request.url()).pathname === '/view')
  await dialog.getByRole('button', { name: 'View' }).click()
  expect((await asked).frame().page()).toBe(await opened)
  await expect(page.getByRole('heading', { name: 'Example Ltd', level: 1 })).toBeVisible()
})

test('payments, corrections and prices', async ({ page }) => {
  await openSignedIn(page, INVOICE)
  const number = await page
    .getByText(/^INV-\d{4}-\d{6}$/)
    .first()
    .textContent()
  await openConsole(page)
  await page.getByRole('link', { name: 'Money' }).click()
  await page.getByLabel('Number of the invoice').fill(number ?? '')
  await page.getByRole('button', { name: 'Find' }).click()
  await expect(page.getByText('To pay')).toBeVisible()
  await page.getByLabel('Id of the group').fill('x')
  await page.getByRole('button', { name: 'Show' }).click()
  await expect(page.getByText('An id, as on the group’s settings page.')).toBeVisible()
  await page.getByLabel('Id of the group').fill('01990000-0000-7000-8000-000000000009')
  await page.getByRole('button', { name: 'Show' }).click()
  await expect(page.getByText('Nothing was corrected yet.')).toBeVisible()
  await page.getByLabel('Quantity').fill('-500')
  await page.getByLabel('Day, in UTC').fill('2026-11-02')
  await page.getByLabel('Reason').fill('Counted twice.')
  await page.getByRole('button', { name: 'Correct', exact: true }).click()
  await expect(page.getByRole('list', { name: 'Corrections' })).toContainText('−500 appends of 2026-11-02')
  await expect(page.getByText('Holds now')).toBeVisible()
  await expectAccessible(page)
  await page.setViewportSize({ width: 390, height: 844 })
  await expectNoSidewaysScroll(page)
})

test('the replicas of a server', async ({ page }) => {
  await openConsole(page)
  await page.getByRole('link', { name: /replicas on s2/ }).click()
  await expect(
    page.getByRole('table', { name: 'Replicas on server 2' }).getByRole('row', { name: /orders/ }),
  ).toBeVisible()
  await expectAccessible(page)
})

test('a customer asks for more, and withdraws it', async ({ page }) => {
  await openSignedIn(page, '/quotas')
  await page.getByRole('button', { name: 'Ask for more: Projects' }).click()
  const dialog = page.getByRole('dialog', { name: 'Ask for more' })
  await dialog.getByLabel('Projects').fill('3')
  await expect(dialog.getByText('A whole number above 20.')).toBeVisible()
  await dialog.getByLabel('Projects').fill('60')
  await dialog.getByLabel('Your plan').fill('One project for each of our teams.')
  await expectAccessible(page)
  await dialog.getByRole('button', { name: 'Ask' }).click()
  await expect(page.getByRole('button', { name: 'Ask for more: Projects' })).toContainText('60 asked for')
  await page.getByRole('button', { name: 'Withdraw' }).first().click()
  await expect(page.getByRole('button', { name: 'Ask for more: Projects' })).toContainText('Ask for more')
})
