import { AxeBuilder } from '@axe-core/playwright'
import { expect, test as base, type Page } from '@playwright/test'

/** The mock service's account and ids, as in mock/seed.ts. */
export const ACCOUNT = { email: 'you@example.com', password: 'correct horse battery' }
const id = (n: string) => `01990000-0000-7000-8000-${n.padStart(12, '0')}`
export const PROJECTS = { production: id('1'), staging: id('2'), unreachable: id('3') }
const group = (n: string) => `/projects/${PROJECTS.production}/groups/${id(n)}`
export const GROUPS = {
  orders: group('a'),
  sessions: group('b'),
  auditTrail: group('c'),
  featureFlags: group('d'),
  presence: group('e'),
}
export const INVOICE = `/invoices/${id('29')}`

/**
 * The mock library's check for a newer service worker fails while the previous page's worker ends. The page is served
 * nevertheless, and the portal is not at fault.
 */
const WORKER_RACE = 'Failed to update a ServiceWorker'

/** Every test fails on the page's uncaught errors, and on violations of the content security policy. */
export const test = base.extend<{ failOnPageErrors: void }>({
  failOnPageErrors: [
    async ({ page }, use) => {
      const errors: string[] = []
      page.on('pageerror', (error) => {
        if (!error.message.startsWith(WORKER_RACE)) errors.push(error.message)
      })
      page.on('console', (message) => {
        if (message.text().includes('Content Security Policy')) errors.push(message.text())
      })
      await use()
      expect(errors).toEqual([])
    },
    { auto: true },
  ],
})
export { expect }

/** Opens a page with a session. */
export async function openSignedIn(page: Page, path: string): Promise<void> {
  await page.goto(`/login?next=${encodeURIComponent(path)}`)
  await page.getByLabel('E-mail').fill(ACCOUNT.email)
  await page.getByLabel('Password').fill(ACCOUNT.password)
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
  await expect(page).toHaveURL(path)
}

/**
 * Checks that axe finds no violation of WCAG 2.2 AA on the page as shown now. `coloursOnly` is for the second theme of
 * a page that has just been checked: only its colours differ.
 */
export async function expectAccessible(page: Page, { coloursOnly = false } = {}): Promise<void> {
  const axe = new AxeBuilder({ page })
    // Sentinels with which dialogs and menus keep the focus inside. They pass it on and never hold it.
    .exclude('[data-base-ui-focus-guard]')
  if (coloursOnly) axe.withRules(['color-contrast'])
  else axe.withTags(['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'])
  const { violations } = await axe.analyze()
  const found = violations.flatMap((each) =>
    each.nodes.map((node) => `${each.impact} ${each.id}: ${node.target.join(' ')} ${node.failureSummary}`),
  )
  expect(found).toEqual([])
}

/** Checks that nothing reaches over the right edge of the screen. */
export async function expectNoSidewaysScroll(page: Page): Promise<void> {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
  expect(over).toBeLessThanOrEqual(0)
}

/** As an operator, in the mock service. */
export async function openConsole(page: Page): Promise<void> {
  await page.goto('/operator')
  await expect(page).toHaveURL('/operator/login')
  await page.getByLabel('Token').fill('qos_mock')
  await page.getByRole('button', { name: 'Open the console' }).click()
  await expect(page.getByRole('heading', { name: 'Fleet', level: 1 })).toBeVisible()
}
