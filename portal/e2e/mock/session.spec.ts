import { ACCOUNT, expect, GROUPS, openSignedIn, PROJECTS, test } from '../support/portal'

const HOME = `/projects/${PROJECTS.production}/groups`

test('a wrong password is said at the field', async ({ page }) => {
  await page.goto('/login')
  await page.getByLabel('E-mail').fill(ACCOUNT.email)
  await page.getByLabel('Password').fill('not it')
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
  await expect(page.getByText('E-mail and password do not match an account.')).toBeVisible()
  await expect(page.getByLabel('Password')).toHaveAttribute('aria-invalid', 'true')
})

test('logging in leads to where one was going', async ({ page }) => {
  await page.goto(`${GROUPS.orders}/sla`)
  await expect(page.getByRole('heading', { name: 'Welcome back' })).toBeVisible()
  await page.getByLabel('E-mail').fill(ACCOUNT.email)
  await page.getByLabel('Password').fill(ACCOUNT.password)
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(`${GROUPS.orders}/sla`)
})

test('signing out', async ({ page }) => {
  await openSignedIn(page, HOME)
  await page.getByRole('button', { name: /Account menu/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await expect(page.getByRole('heading', { name: 'Welcome back' })).toBeVisible()
  await page.goto(HOME)
  await expect(page.getByRole('heading', { name: 'Welcome back' })).toBeVisible()
})

test('a chosen theme stays after a reload', async ({ page }) => {
  await page.emulateMedia({ colorScheme: 'light' })
  await openSignedIn(page, HOME)
  await page.getByRole('button', { name: /Account menu/ }).click()
  await page.getByRole('menuitemradio', { name: 'Dark' }).click()
  const colourScheme = () => page.evaluate(() => getComputedStyle(document.documentElement).colorScheme)
  expect(await colourScheme()).toBe('dark')
  await page.reload()
  await expect(page.getByRole('heading', { name: 'Groups' })).toBeVisible()
  expect(await colourScheme()).toBe('dark')
})

test('projects: switch, create, refuse a taken name', async ({ page }) => {
  await openSignedIn(page, HOME)
  await page.getByRole('button', { name: /switch project/ }).click()
  await page.getByRole('menuitemradio', { name: 'staging' }).click()
  await expect(page).toHaveURL(`/projects/${PROJECTS.staging}/groups`)
  await page.getByRole('button', { name: /switch project/ }).click()
  await page.getByRole('menuitem', { name: 'New project' }).click()
  const dialog = page.getByRole('dialog', { name: 'New project' })
  await dialog.getByLabel('Name').fill('staging')
  await dialog.getByRole('button', { name: 'Create project' }).click()
  await expect(dialog.getByRole('alert')).toContainText('There is a project "staging" already.')
  await dialog.getByLabel('Name').fill('experiments')
  await dialog.getByRole('button', { name: 'Create project' }).click()
  await expect(page.getByRole('button', { name: 'Project experiments, switch project' })).toBeVisible()
  await expect(page.getByRole('heading', { name: 'Your first group' })).toBeVisible()

  await page.getByRole('button', { name: /switch project/ }).click()
  await page.getByRole('menuitem', { name: 'Delete experiments' }).click()
  const deletion = page.getByRole('dialog', { name: 'Delete the project experiments?' })
  await deletion.getByLabel(/Type/).fill('experiments')
  await deletion.getByRole('button', { name: 'Delete project' }).click()
  await expect(page.getByRole('button', { name: /Project experiments/ })).toHaveCount(0)
  await expect(page.getByRole('heading', { name: 'Groups' })).toBeVisible()
})

test('a project that has groups is not deleted', async ({ page }) => {
  await openSignedIn(page, HOME)
  await page.getByRole('button', { name: /switch project/ }).click()
  await page.getByRole('menuitem', { name: 'Delete production' }).click()
  const dialog = page.getByRole('dialog', { name: 'Delete the project production?' })
  await dialog.getByLabel(/Type/).fill('production')
  await dialog.getByRole('button', { name: 'Delete project' }).click()
  await expect(dialog.getByRole('alert')).toContainText('Delete them first')
})
