import { expect, expectAccessible, expectNoSidewaysScroll, INVOICE, openSignedIn, test } from '../support/portal'

/** "$1,234.567890" → micro-units. */
function micros(text: string): number {
  const [, sign = '', whole = '', decimals = ''] = /(−?)\$([\d,]+)\.(\d{6})/.exec(text) ?? []
  return (sign ? -1 : 1) * Number(whole.replaceAll(',', '') + decimals)
}

test('the open invoice adds up', async ({ page }) => {
  await openSignedIn(page, '/invoices')
  await expect(page.getByRole('table', { name: 'orders' })).toContainText('Reservation')
  const [amounts, parts, total] = await page.evaluate(() => {
    const texts = (selector: string) => [...document.querySelectorAll(selector)].map((each) => each.textContent ?? '')
    return [
      texts('section[aria-labelledby=current-invoice] td:last-child'),
      texts('[data-testid=invoice-part]'),
      texts('[data-testid=invoice-total]'),
    ]
  })
  const sum = (texts: string[] = []) => texts.reduce((added, text) => added + micros(text), 0)
  expect(amounts?.length).toBeGreaterThan(3)
  expect(parts?.length).toBe(2)
  expect(sum(amounts)).toBe(micros(parts?.[0] ?? ''))
  expect(sum(parts)).toBe(sum(total))
})

test('spend, its forecast, and alerts of budgets', async ({ page }) => {
  await openSignedIn(page, '/invoices')
  const subtotal = await page.getByTestId('invoice-part').first().textContent()
  await page.getByRole('main').getByRole('link', { name: 'Usage and cost' }).click()
  const spent = await page.getByTestId('spent').getAttribute('title')
  // The two are read within seconds of each other.
  expect(micros(`${spent}000000`.replace(/(\.\d{6}).*/, '$1'))).toBeCloseTo(micros(subtotal ?? ''), -6)
  await expect(page.getByRole('meter', { name: 'Budget of Example Ltd' })).toHaveAttribute(
    'aria-valuetext',
    /of \$[\d,.]+ spent, \$[\d,.]+ expected/,
  )
  await expect(page.getByText(/forecast for Example Ltd reached 100 % of the budget/i).first()).toBeVisible()
  await expect(page.getByRole('img', { name: /Cost of each day/ })).toBeVisible()
})

test('a budget is set, changed and removed, by keyboard', async ({ page }) => {
  await openSignedIn(page, '/usage')
  await page.getByRole('button', { name: 'Set the budget of staging' }).focus()
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Budget of staging' })
  await expect(dialog).toBeVisible()
  await expectAccessible(page)
  await dialog.getByLabel('Amount each month').fill('12,50')
  await page.keyboard.press('Enter')
  await expect(dialog.getByText('Enter an amount above zero')).toBeVisible()
  await dialog.getByLabel('Amount each month').fill('12.50')
  await dialog.getByLabel('Alert when spent').fill('')
  await dialog.getByLabel('Alert when forecast').fill('')
  await page.keyboard.press('Enter')
  await expect(dialog.getByText('Enter a threshold in one of the two.')).toBeVisible()
  await dialog.getByLabel('Alert when forecast').fill('90, 100')
  await dialog.getByLabel('Once the amount is reached').selectOption('Suspend the groups')
  await expect(dialog.getByText('Groups take neither appends nor reads')).toBeVisible()
  await dialog.getByRole('button', { name: 'Save budget' }).click()
  await expect(dialog).toBeHidden()
  await expect(page.getByRole('meter', { name: 'Budget of staging' })).toHaveAttribute('aria-valuemax', '12500000')
  await page.getByRole('button', { name: 'Change the budget of staging' }).click()
  await dialog.getByRole('button', { name: 'Remove budget' }).click()
  await expect(page.getByRole('meter', { name: 'Budget of staging' })).toHaveCount(0)
})

test('a cap that is reached says what it does', async ({ page }) => {
  await openSignedIn(page, '/usage')
  await page.getByRole('button', { name: 'Change budget', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Budget of Example Ltd' })
  await dialog.getByLabel('Once the amount is reached').selectOption('Suspend the groups')
  await expectAccessible(page)
  await dialog.getByRole('button', { name: 'Save budget' }).click()
  await expect(page.getByText(/Example Ltd reached its cap of .*: its groups are suspended\./)).toBeVisible()
  await expectAccessible(page)
})

test('a new organization has spent nothing', async ({ page }) => {
  await page.goto('/signup')
  await page.getByLabel('E-mail').fill('new@example.com')
  await page.getByLabel('Password').fill('correct horse battery')
  await page.getByLabel(/Organi[sz]ation/).fill('New Ltd')
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.getByRole('link', { name: 'Usage and cost' }).click()
  await expect(page.getByTestId('spent')).toHaveText('$0.00')
  await expect(page.getByRole('button', { name: 'Set budget', exact: true })).toBeVisible()
  await page.setViewportSize({ width: 390, height: 844 })
  await expectNoSidewaysScroll(page)
})

test('an issued invoice with its credit', async ({ page }) => {
  await openSignedIn(page, '/invoices')
  await page.getByRole('link', { name: /INV-\d{4}-000002/ }).click()
  await expect(page.getByRole('heading', { name: /Invoice INV-\d{4}-000002/ })).toBeVisible()
  await expect(page.getByRole('row', { name: /SLA credit: throughput.*−\$/ })).toBeVisible()
})

test('an overdue invoice is paid by card', async ({ page }) => {
  await openSignedIn(page, '/invoices')
  await expect(page.getByText(/of INV-\d{4}-000002 were due on/)).toBeVisible()
  const row = page.getByRole('row', { name: /INV-\d{4}-000002/ })
  await expect(row).toContainText(/Overdue\$[\d,.]+ since/)
  await page.getByRole('link', { name: 'See it and pay' }).click()
  await expect(page.getByRole('list', { name: 'Payments and reminders' })).toContainText('Reminder')
  await page.getByRole('button', { name: /^Pay \$[\d,.]+ by card$/ }).click()
  await expect(page.getByText('Your payment has arrived.')).toBeVisible()
  await expect(page.getByRole('list', { name: 'Payments and reminders' })).toContainText('Card payment')
  await expect(page.getByRole('button', { name: /^Pay / })).toHaveCount(0)
  await page.getByRole('link', { name: 'Invoices' }).first().click()
  await expect(page.getByText(/were due on/)).toHaveCount(0)
})

test('an invoice as files', async ({ page }) => {
  await openSignedIn(page, INVOICE)
  await expect(page.getByText('VAT 19 %')).toBeVisible()
  for (const [button, name] of [
    ['Download PDF', /^INV-\d{4}-00000\d\.pdf$/],
    ['Download the lines as CSV', /^INV-\d{4}-00000\d\.csv$/],
  ] as const) {
    const arriving = page.waitForEvent('download')
    await page.getByRole('button', { name: button }).click()
    expect((await arriving).suggestedFilename()).toMatch(name)
  }
})

test('an invoice that does not exist', async ({ page }) => {
  await openSignedIn(page, '/invoices/01990000-0000-7000-8000-00000000ffff')
  await expect(page.getByRole('heading', { name: 'Not found' })).toBeVisible()
})

test('quotas show what is nearly used up', async ({ page }) => {
  await openSignedIn(page, '/quotas')
  await expect(page.getByRole('meter', { name: /Groups of one project/ })).toHaveAttribute('aria-valuenow', '5')
})

test('a commitment is made, with what it costs said first', async ({ page }) => {
  await openSignedIn(page, '/usage')
  await expect(page.getByText(/Nothing is committed/)).toBeVisible()
  await page.getByRole('button', { name: 'Commit', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Commit to reservations' })
  await expectAccessible(page)
  const amount = dialog.getByLabel('Amount each month, at list prices')
  await expect(dialog.getByRole('status')).toContainText('less than now')
  await amount.fill('nothing')
  await dialog.getByRole('button', { name: 'Commit', exact: true }).click()
  await expect(dialog.getByText(/Enter an amount of at least 1/)).toBeVisible()
  await amount.fill('1,000,000')
  await expect(dialog.getByRole('status')).toContainText('more than now')
  await amount.fill('10')
  await dialog.getByLabel('Term').selectOption({ label: '3 years, 35 % off' })
  await dialog.getByRole('button', { name: 'Commit to $6.50 a month' }).click()
  await expect(dialog).toBeHidden()
  await expect(page.getByText('$10.00 a month, 35 % off')).toBeVisible()
  await expect(page.getByText('to come')).toBeVisible()
  await expectNoSidewaysScroll(page)
})
