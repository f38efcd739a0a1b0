import {
  expect,
  expectAccessible,
  expectNoSidewaysScroll,
  GROUPS,
  openSignedIn,
  PROJECTS,
  test,
} from '../support/portal'

test('a stranger reads the documentation, and follows its links', async ({ page }) => {
  await page.goto('/login')
  await page.getByRole('link', { name: 'Documentation' }).click()
  await expect(page.getByRole('heading', { name: 'Get started' })).toBeVisible()
  await page.getByRole('navigation').getByRole('link', { name: 'Python' }).click()
  await expect(page.getByRole('heading', { name: 'quorate for Python' })).toBeVisible()
  await expect(page.getByLabel('Code').first()).toContainText('connect_group')
  await expectAccessible(page)
  await page.setViewportSize({ width: 390, height: 844 })
  await expectNoSidewaysScroll(page)
  await page.goto('/docs/nonsense')
  await expect(page.getByText('There is nothing at this address')).toBeVisible()
})

test('the API reference finds a call, and shows what it takes and answers', async ({ page }) => {
  test.slow()
  await page.goto('/docs/api')
  await page.getByLabel('Find a call').fill('post /v1/quotes')
  const call = page.locator('#create_quote')
  await call.locator('summary').click()
  await expect(call.getByText('rate_per_s').first()).toBeVisible()
  await expect(call.getByLabel(/How to call/)).toContainText('Authorization: Bearer $QUORATE_API_KEY')
  await expectAccessible(page)
  await page.emulateMedia({ colorScheme: 'dark' })
  await expectAccessible(page, { coloursOnly: true })
  await page.setViewportSize({ width: 390, height: 844 })
  await expectNoSidewaysScroll(page)
  await page.getByLabel('Find a call').fill('no such call')
  await expect(page.getByText(/No call has this/)).toBeVisible()
})

test('the palette opens by keyboard, and leads to a page and to a group', async ({ page }) => {
  await openSignedIn(page, `/projects/${PROJECTS.production}/keys`)
  await expect(page.getByRole('heading', { name: 'API keys' })).toBeVisible()
  await page.keyboard.press('Control+k')
  const palette = page.getByRole('dialog', { name: 'Go to' })
  const input = palette.getByRole('combobox')
  await expect(input).toBeFocused()
  await expectAccessible(page)
  await input.fill('audit')
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL('/audit')
  await page.getByRole('button', { name: /Go to…/ }).click()
  await input.fill('orders')
  await expect(palette.getByRole('option', { name: 'orders Group' })).toBeVisible()
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(new RegExp(GROUPS.orders))
  await page.keyboard.press('Control+k')
  await input.fill('nothing has this')
  await expect(palette.getByText('Nothing has this name.')).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(palette).toHaveCount(0)
})

test('an unknown address keeps the navigation of who is logged in', async ({ page }) => {
  await openSignedIn(page, '/quotas')
  await page.goto('/no/such/page')
  await expect(page.getByText('There is nothing at this address')).toBeVisible()
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Quotas' }).click()
  await expect(page).toHaveURL('/quotas')
})
