import { randomUUID } from 'node:crypto'
import type { Page } from '@playwright/test'
import { expect, test } from '../support/portal'
import { linkIn } from './mailbox'
import { codeOf } from './totp'

const NAME = `people-${randomUUID().slice(0, 8)}`
const [FOUNDER, COLLEAGUE] = [`${NAME}@example.com`, `${NAME}-colleague@example.com`]
const PASSWORD = 'correct horse battery'
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

test('sign up, verify by mail, add an authenticator, invite a colleague, who joins with a passkey; log in with a code', async ({
  page,
  browser,
  baseURL,
}) => {
  await page.goto('/signup')
  await page.getByLabel('E-mail').fill(FOUNDER)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByLabel('Organization').fill(NAME)
  await page.getByRole('button', { name: 'Create account' }).click()
  await expect(page.getByText(`Verify ${FOUNDER}`)).toBeVisible()
  await page.goto(pathOf(await linkIn(FOUNDER, /Verify your e-mail/)))
  await expect(page.getByText('Your address is verified')).toBeVisible()

  await page.goto('/account')
  await page.getByRole('button', { name: 'Add an authenticator' }).click()
  const dialog = page.getByRole('dialog')
  const secret = (await dialog.locator('code').textContent()) ?? ''
  await dialog.getByLabel('Code', { exact: true }).fill(codeOf(secret))
  await dialog.getByRole('button', { name: 'Confirm' }).click()
  await dialog.getByRole('button', { name: 'I have kept them' }).click()
  await expect(page.getByText('10 recovery codes are left')).toBeVisible()

  await page.goto('/members')
  await page.getByRole('button', { name: 'Invite' }).click()
  await page.getByLabel('E-mail').fill(COLLEAGUE)
  await page.getByRole('radio', { name: 'Viewer' }).check()
  await page.getByRole('button', { name: 'Send invitation' }).click()
  await expect(page.getByRole('listitem').filter({ hasText: COLLEAGUE })).toBeVisible()

  // Passkeys are of names, so on this machine of localhost.
  const elsewhere = await browser.newContext({ baseURL: String(baseURL).replace('127.0.0.1', 'localhost') })
  const theirs = await elsewhere.newPage()
  await plugInAuthenticator(theirs)
  await theirs.goto(pathOf(await linkIn(COLLEAGUE, /Join/)))
  await expect(theirs.getByRole('heading', { name: `Join ${NAME}` })).toBeVisible()
  await theirs.getByRole('button', { name: 'Accept with a passkey' }).click()
  await expect(theirs.getByRole('heading', { name: 'Groups', level: 1 })).toBeVisible()
  // A viewer is offered nothing that would be refused.
  for (const name of ['Members', 'API keys', 'Invoices'])
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

  await page.getByRole('button', { name: /Account menu/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByLabel('E-mail').fill(FOUNDER)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
  // The code of the present half minute was used up when the authenticator was added.
  await page.getByLabel('Code of your authenticator').fill(codeOf(secret, 1))
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
  await expect(page.getByRole('heading', { name: 'Your first group' })).toBeVisible()
})
