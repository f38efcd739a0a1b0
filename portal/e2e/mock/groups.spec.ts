import { expect, openSignedIn, PROJECTS, test } from '../support/portal'

const LIST = `/projects/${PROJECTS.production}/groups`

test('the list shows state, reservation and cost, and leads to a group', async ({ page }) => {
  await openSignedIn(page, LIST)
  const row = page.getByRole('row', { name: /sessions/ })
  await expect(row).toContainText('Degraded')
  await expect(row).toContainText('20,000/s')
  await expect(row).toContainText('$')
  await row.getByRole('link').click()
  await expect(page.getByRole('heading', { name: 'sessions' })).toBeVisible()
})

test('search and order live in the address', async ({ page }) => {
  await openSignedIn(page, LIST)
  await page.getByRole('searchbox', { name: 'Find a group by name' }).fill('a')
  await expect(page).toHaveURL(/q=a/)
  await page.getByRole('button', { name: 'Reserved' }).click()
  await expect(page).toHaveURL(/sort=rate/)
  await page.reload()
  await expect(page.getByRole('rowheader').or(page.getByRole('row')).nth(1)).toContainText('audit-trail')
  await expect(page.getByRole('row', { name: /orders/ })).toHaveCount(0)
  await page.getByRole('searchbox', { name: 'Find a group by name' }).fill('zzz')
  await page.getByRole('link', { name: 'Show all' }).click()
  await expect(page.getByRole('row', { name: /orders/ })).toBeVisible()
})

test('an empty project says how to begin', async ({ page }) => {
  await openSignedIn(page, `/projects/${PROJECTS.staging}/groups`)
  await page.getByRole('link', { name: 'New group' }).click()
  await expect(page.getByRole('heading', { name: 'New group' })).toBeVisible()
})

test('a list that cannot be read offers to try again', async ({ page }) => {
  await openSignedIn(page, `/projects/${PROJECTS.unreachable}/groups`)
  await expect(page.getByRole('heading', { name: 'We could not load your groups' })).toBeVisible()
  await page.getByRole('button', { name: 'Try again' }).click()
  await expect(page.getByRole('heading', { name: 'We could not load your groups' })).toBeVisible()
})
