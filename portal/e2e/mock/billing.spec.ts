import { expect, openSignedIn, test } from '../support/portal'

/** "$1,234.567890" → micro-units. */
function micros(text: string): number {
  const [, sign = '', whole = '', decimals = ''] = /(−?)\$([\d,]+)\.(\d{6})/.exec(text) ?? []
  return (sign ? -1 : 1) * Number(whole.replaceAll(',', '') + decimals)
}

test('the open invoice adds up', async ({ page }) => {
  await openSignedIn(page, '/invoices')
  await expect(page.getByRole('table', { name: 'orders' })).toContainText('Reservation')
  const [amounts, total] = await page.evaluate(() => {
    const cells = [...document.querySelectorAll('section[aria-labelledby=current-invoice] td:last-child')]
    return [
      cells.map((cell) => cell.textContent ?? ''),
      document.querySelector('[data-testid=invoice-total]')?.textContent ?? '',
    ]
  })
  expect(amounts.length).toBeGreaterThan(3)
  expect(amounts.reduce((sum, amount) => sum + micros(amount), 0)).toBe(micros(total))
})

test('an issued invoice with its credit', async ({ page }) => {
  await openSignedIn(page, '/invoices')
  await page.getByRole('link', { name: /INV-\d{4}-000002/ }).click()
  await expect(page.getByRole('heading', { name: /Invoice INV-\d{4}-000002/ })).toBeVisible()
  await expect(page.getByRole('row', { name: /SLA credit: throughput.*−\$/ })).toBeVisible()
})

test('an invoice that does not exist', async ({ page }) => {
  await openSignedIn(page, '/invoices/01990000-0000-7000-8000-00000000ffff')
  await expect(page.getByRole('heading', { name: 'Not found' })).toBeVisible()
})

test('quotas show what is nearly used up', async ({ page }) => {
  await openSignedIn(page, '/quotas')
  await expect(page.getByRole('meter', { name: /Groups of one project/ })).toHaveAttribute('aria-valuenow', '5')
})
