import type { Page } from '@playwright/test'
import {
  expect,
  expectAccessible,
  expectNoSidewaysScroll,
  GROUPS,
  INVOICE,
  openSignedIn,
  PROJECTS,
  test,
} from '../support/portal'

/** Every page, with a text that shows that it has loaded. */
const PAGES: [string, string, RegExp][] = [
  ['groups', `/projects/${PROJECTS.production}/groups`, /audit-trail/],
  ['no groups', `/projects/${PROJECTS.staging}/groups`, /Your first group/],
  ['groups that cannot be read', `/projects/${PROJECTS.unreachable}/groups`, /We could not load/],
  ['new group', `/projects/${PROJECTS.production}/groups/new?welcome=true`, /We can promise this/],
  ['overview', GROUPS.orders, /Admitted with/],
  ['overview of a degraded group', GROUPS.sessions, /Catching up/],
  ['metrics', `${GROUPS.orders}/metrics`, /Mean of each minute/],
  ['log', `${GROUPS.orders}/log`, /Entries 1,154 to 1,203/],
  ['SLA', `${GROUPS.sessions}/sla`, /Incidents/],
  ['connect', `${GROUPS.featureFlags}/connect?welcome=true`, /Waiting for the first append/],
  ['partitions', `${GROUPS.orders}/partitions`, /One log/],
  ['settings', `${GROUPS.orders}/settings`, /Delete this group/],
  ['resize', `${GROUPS.orders}/resize`, /We can promise this/],
  ['API keys', `/projects/${PROJECTS.production}/keys`, /nightly export/],
  ['Guarantee', `/projects/${PROJECTS.production}/guarantee`, /Share now/],
  ['invoices', '/invoices', /INV-\d{4}-000001/],
  ['usage and cost', '/usage', /Nothing is committed/],
  ['documentation', '/docs', /From an account to the first/],
  ['a guide', '/docs/webhooks', /Webhooks/],
  ['nothing', '/projects/x/y/z', /nothing at this address/],
  ['invoice', INVOICE, /SLA credit/],
  ['quotas', '/quotas', /Groups of one project/],
]

/** Light, dark, and on a phone. */
async function check(page: Page): Promise<void> {
  await page.setViewportSize({ width: 1280, height: 900 })
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  await expectAccessible(page)
  await page.emulateMedia({ colorScheme: 'dark' })
  await expectAccessible(page, { coloursOnly: true })
  await page.setViewportSize({ width: 390, height: 844 })
  await expectNoSidewaysScroll(page)
}

// Each test visits a few pages, because signing in takes longer than a visit.
const PAGES_PER_TEST = 4
for (let from = 0; from < PAGES.length; from += PAGES_PER_TEST) {
  const some = PAGES.slice(from, from + PAGES_PER_TEST)
  test(`in light, in dark and on a phone: ${some.map(([name]) => name).join(', ')}`, async ({ page }) => {
    // Axe checks each page twice, which takes seconds on busy cores.
    test.slow()
    await openSignedIn(page, '/quotas')
    for (const [name, path, loaded] of some) {
      await test.step(name, async () => {
        await page.goto(path)
        await expect(page.getByText(loaded).first()).toBeVisible()
        await check(page)
      })
    }
  })
}

test('in light, in dark and on a phone: what needs no session', async ({ page }) => {
  for (const path of ['/login', '/signup', '/nowhere/at/all']) {
    await test.step(path, async () => {
      await page.goto(path)
      await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
      await check(page)
    })
  }
})

test('dialogs, menus and refusals, in the dark', async ({ page }) => {
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' })
  await openSignedIn(page, `/projects/${PROJECTS.production}/groups/new`)
  await page.getByRole('radio', { name: '7' }).check()
  await expect(page.getByText('Scarce: servers.')).toBeVisible()
  await expectAccessible(page)
  await page.getByRole('button', { name: /Account menu/ }).click()
  await expect(page.getByRole('menuitem', { name: 'Sign out' })).toBeVisible()
  await expectAccessible(page)
  await page.keyboard.press('Escape')
  await page.goto(`${GROUPS.orders}/settings`)
  await page.getByRole('button', { name: 'Delete group' }).click()
  await expect(page.getByRole('dialog')).toBeVisible()
  await expectAccessible(page)
})

test('on a phone the navigation is a drawer', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 })
  await openSignedIn(page, `/projects/${PROJECTS.production}/groups`)
  await page.getByRole('button', { name: 'Open navigation' }).click()
  await page.getByRole('link', { name: 'Invoices' }).click()
  await expect(page.getByRole('heading', { name: 'Invoices', level: 1 })).toBeVisible()
  await expect(page.getByRole('dialog')).toHaveCount(0)
})
