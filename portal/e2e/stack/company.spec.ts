import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Browser, Page } from '@playwright/test'
import { expect, test } from '../support/portal'
import { linkIn } from './mailbox'
import { runProgram } from './program'
import { receiver, verified } from './receiver'
import { codeOf } from './totp'

const NAME = `company-${randomUUID().slice(0, 8)}`
const [FOUNDER, COLLEAGUE] = [`${NAME}@example.com`, `${NAME}-colleague@example.com`]
const PASSWORD = 'correct horse battery'
const GROUP = 'orders'
const SECONDS_APPENDED = 5
const PATH = /\/\/[^/]+(\/.*)/

/** Links carry the service's own address, which is the one under test. */
const pathOf = (link: string) => PATH.exec(link)?.[1] ?? '/'

/** A device that makes passkeys, and verifies its user without asking. */
async function plugInAuthenticator(page: Page): Promise<void> {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
}

async function signUpAndVerify(page: Page): Promise<void> {
  await page.goto('/signup')
  await page.getByLabel('E-mail').fill(FOUNDER)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByLabel('Organization').fill(NAME)
  await page.getByRole('button', { name: 'Create account' }).click()
  await expect(page.getByText(`Verify ${FOUNDER}`)).toBeVisible()
  await page.goto(pathOf(await linkIn(FOUNDER, /Verify your e-mail/)))
  await expect(page.getByText('Your address is verified')).toBeVisible()
}

/** The authenticator's secret. */
async function addAuthenticator(page: Page): Promise<string> {
  await page.goto('/account')
  await page.getByRole('button', { name: 'Add an authenticator' }).click()
  const dialog = page.getByRole('dialog')
  const secret = (await dialog.locator('code').textContent()) ?? ''
  await dialog.getByLabel('Code', { exact: true }).fill(codeOf(secret))
  await dialog.getByRole('button', { name: 'Confirm' }).click()
  await dialog.getByRole('button', { name: 'I have kept them' }).click()
  await expect(page.getByText('10 recovery codes are left')).toBeVisible()
  return secret
}

async function invite(page: Page): Promise<void> {
  await page.goto('/members')
  await page.getByRole('button', { name: 'Invite' }).click()
  await page.getByLabel('E-mail').fill(COLLEAGUE)
  await page.getByRole('radio', { name: 'Viewer' }).check()
  await page.getByRole('button', { name: 'Send invitation' }).click()
  await expect(page.getByRole('listitem').filter({ hasText: COLLEAGUE })).toBeVisible()
}

/** The colleague joins with a passkey alone, gets another role, and logs in again. */
async function join(page: Page, browser: Browser, baseURL: string): Promise<void> {
  // Passkeys are of names, so on this machine of localhost.
  const elsewhere = await browser.newContext({ baseURL: baseURL.replace('127.0.0.1', 'localhost') })
  const theirs = await elsewhere.newPage()
  await plugInAuthenticator(theirs)
  await theirs.goto(pathOf(await linkIn(COLLEAGUE, /Join/)))
  await expect(theirs.getByRole('heading', { name: `Join ${NAME}` })).toBeVisible()
  await theirs.getByRole('button', { name: 'Accept with a passkey' }).click()
  await expect(theirs.getByRole('heading', { name: 'Groups', level: 1 })).toBeVisible()
  // A viewer is offered nothing that would be refused.
  for (const name of ['Members', 'API keys', 'Invoices', 'Webhooks'])
    await expect(theirs.getByRole('link', { name, exact: true })).toHaveCount(0)
  await expect(theirs.getByRole('link', { name: 'New group' })).toHaveCount(0)

  await page.reload()
  const row = page.getByRole('row', { name: new RegExp(COLLEAGUE) })
  await row.getByRole('button', { name: /Change/ }).click()
  await page.getByRole('dialog').getByRole('radio', { name: 'Developer' }).check()
  await page.getByRole('dialog').getByRole('button', { name: 'Change role' }).click()
  await expect(row).toContainText('Developer')
  await theirs.reload()
  await expect(theirs).toHaveURL(/login/)
  await theirs.getByRole('button', { name: 'Log in with a passkey' }).click()
  await expect(theirs.getByRole('link', { name: 'API keys' })).toBeVisible()
  await theirs.goto('/account')
  const passkeys = theirs.getByRole('list', { name: 'Passkeys' })
  await expect(passkeys).toContainText('used just now')
  await theirs.getByRole('button', { name: 'Add a passkey' }).click()
  await theirs.getByRole('dialog').getByRole('button', { name: 'Go on' }).click()
  await expect(theirs.getByRole('alert')).toContainText('This device has a passkey of your account already.')
  await elsewhere.close()
}

async function logInAgain(page: Page, secret: string): Promise<void> {
  await page.getByRole('button', { name: /Account menu/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByLabel('E-mail').fill(FOUNDER)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
  // The code of the present half minute was used up when the authenticator was added.
  await page.getByLabel('Code of your authenticator').fill(codeOf(secret, 1))
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
  await expect(page.getByRole('heading', { name: 'Your first group' })).toBeVisible()
}

/** A group, and a key that may append to this group alone. */
async function makeGroupAndKey(page: Page): Promise<{ groupId: string; apiKey: string; groupPage: string }> {
  await page.getByRole('link', { name: 'New group' }).first().click()
  await page.getByLabel('Name').fill(GROUP)
  await page.getByLabel('Rate to reserve', { exact: true }).fill('500')
  await expect(page.getByText('We can promise this')).toBeVisible()
  await page.getByRole('button', { name: 'Create group' }).click()
  await expect(page.getByText('Waiting for the first append')).toBeVisible()
  const groupPage = page.url().replace(/\/connect.*/, '')
  const groupId = /groups\/([\da-f-]{36})/.exec(groupPage)?.[1] ?? ''
  await page.getByRole('link', { name: 'API keys' }).click()
  await page.getByRole('button', { name: 'New API key' }).first().click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name', { exact: true }).fill('orders service')
  await dialog.getByRole('checkbox', { name: /Read/ }).uncheck()
  await dialog.getByRole('radio', { name: 'Some groups' }).check()
  await dialog.getByLabel('Names of groups').fill(GROUP)
  await dialog.getByRole('button', { name: 'Make key' }).click()
  const apiKey = (await dialog.getByTestId('api-key').textContent()) ?? ''
  await dialog.getByRole('button', { name: 'I have kept it' }).click()
  await expect(page.getByRole('row', { name: /orders service/ })).toContainText(`append: ${GROUP}`)
  return { groupId, apiKey, groupPage }
}

async function resize(page: Page, groupPage: string): Promise<void> {
  await page.goto(`${groupPage}/resize`)
  await page.getByLabel('Rate to reserve', { exact: true }).fill('800')
  await expect(page.getByText(/more than now/)).toBeVisible()
  await page.getByRole('button', { name: 'Resize group' }).click()
  await expect(page.getByText('800/s', { exact: true })).toBeVisible()
}

/** The secret with which events are signed. */
async function makeWebhook(page: Page, url: string): Promise<string> {
  await page.goto('/webhooks')
  await page.getByRole('button', { name: 'New webhook' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('URL').fill(url)
  await dialog.getByRole('button', { name: 'Create webhook' }).click()
  const secret = (await dialog.getByTestId('api-key').textContent()) ?? ''
  await dialog.getByRole('button', { name: 'I have kept it' }).click()
  await page.getByRole('button', { name: 'Send a test' }).click()
  await expect(page.getByRole('row', { name: /Test/ })).toContainText('Delivered')
  return secret
}

/** A budget that the month has spent already, which throttles. */
async function reachCap(page: Page): Promise<void> {
  await page.goto('/usage')
  await page.getByRole('button', { name: 'Set budget', exact: true }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Amount each month').fill('0.000001')
  await dialog.getByLabel('Once the amount is reached').selectOption({ value: 'throttle' })
  await dialog.getByRole('button', { name: 'Save budget' }).click()
  await expect(dialog).toHaveCount(0)
}

async function exportAndClose(page: Page): Promise<void> {
  await page.goto('/organization')
  const downloading = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download everything' }).click()
  const lines = (await readFile(await (await downloading).path(), 'utf8')).trim().split('\n')
  const end = JSON.parse(lines.at(-1) ?? '{}') as { end: { lines: number } }
  expect(end.end.lines).toBe(lines.length - 1)
  for (const known of [FOUNDER, COLLEAGUE, `"name": "${GROUP}"`, 'budget_actions'])
    expect(lines.join('\n')).toContain(known)
  await page.getByRole('button', { name: 'Close the organization' }).click()
  await page
    .getByRole('dialog')
    .getByLabel(/to confirm/)
    .fill(NAME)
  await page.getByRole('dialog').getByRole('button', { name: 'Close organization' }).click()
  await expect(page.getByText('This organization is closing')).toBeVisible()
}

test('a company: from the sign-up over colleagues, a cap and a webhook to its end', async ({
  page,
  browser,
  baseURL,
}) => {
  test.setTimeout(180_000)
  page.setDefaultTimeout(20_000)
  const service = String(baseURL)
  const hook = await receiver()
  await test.step('sign up, and verify by mail', () => signUpAndVerify(page))
  const totp = await test.step('an authenticator', () => addAuthenticator(page))
  await test.step('invite a colleague', () => invite(page))
  await test.step('the colleague joins with a passkey', () => join(page, browser, service))
  await test.step('log in with a code', () => logInAgain(page, totp))
  const { groupId, apiKey, groupPage } = await test.step('a group and a narrow key', () => makeGroupAndKey(page))
  await test.step('append', async () => {
    const acked = await runProgram({ apiUrl: new URL(service).origin, apiKey, groupId }, SECONDS_APPENDED)
    expect(Number(acked)).toBeGreaterThan(0)
  })
  await test.step('resize', () => resize(page, groupPage))
  const secret = await test.step('a webhook', () => makeWebhook(page, hook.url))
  await test.step('a cap is reached', () => reachCap(page))
  await test.step('the webhook is told, and its signature is sound', async () => {
    await expect
      .poll(() => hook.received.map((each) => verified(each, secret)?.type), { timeout: 60_000 })
      .toContain('budget.cap_reached')
    expect(hook.received.every((each) => verified(each, secret) !== null)).toBe(true)
    expect(hook.received.some((each) => verified(each, 'whsec_AAAA') !== null)).toBe(false)
  })
  await test.step('the audit log has all of it', async () => {
    await page.goto('/audit')
    for (const deed of [
      'signed up',
      'added an authenticator',
      `invited ${COLLEAGUE}`,
      'joined',
      `created the group “${GROUP}”`,
      'made the API key “orders service”',
      'resized a group',
      'created a webhook',
      'set a budget',
    ])
      await expect(page.getByRole('listitem').filter({ hasText: deed }).first()).toBeVisible()
  })
  await test.step('export, and the end', () => exportAndClose(page))
  await hook.close()
})
