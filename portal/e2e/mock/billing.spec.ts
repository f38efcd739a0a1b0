import { expect, INVOICE, openSignedIn, test } from '../support/portal'

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

test('an issued invoice with its credit', async ({ page }) => {
  await openSignedIn(page, '/invoices')
  await page.getByRole('link', { name: /INV-\d{4}-000002/ }).click()
  await expect(page.getByRole('heading', { name: /Invoice INV-\d{4}-000002/ })).toBeVisible()
  await expect(page.getByRole('row', { name: /SLA credit: throughput.*−\$/ })).toBeVisible()
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
