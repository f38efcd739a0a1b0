import { expect, expectAccessible, GROUPS, openSignedIn, PROJECTS, test } from '../support/portal'

test('the overview is live', async ({ page }) => {
  await openSignedIn(page, GROUPS.orders)
  const entries = page.getByTestId('committed-entries')
  await expect(entries).toHaveText(/^[\d,]{9,}$/)
  const before = await entries.textContent()
  await expect(entries).not.toHaveText(String(before))
  await expect(page.getByRole('img', { name: /Throughput now: [1-9]/ })).toBeVisible()
  await expect(page.getByRole('img', { name: /Commit latency now: p50/ })).toBeVisible()
})

test('the ring shows living, dead and learning replicas', async ({ page }) => {
  await openSignedIn(page, GROUPS.sessions)
  await expect(
    page.getByRole('img', {
      name: /Ring of epoch 7: s3 head, alive; s5 follower, dead; s2 tail, alive; s1 learner, alive/,
    }),
  ).toBeVisible()
  await expect(page.getByRole('row', { name: /s5.*Dead/ })).toBeVisible()
  await expect(page.getByRole('row', { name: /s1.*Catching up/ })).toBeVisible()
  await expect(page.getByText('Server s5 stopped answering')).toBeVisible()
})

test('a resize that waits for moves is told, and what moves', async ({ page }) => {
  await openSignedIn(page, GROUPS.auditTrail)
  await expect(page.getByText('A resize is under way')).toBeVisible()
  await expect(page.getByText(/begin once replicas have moved/)).toBeVisible()
  await expect(page.getByTestId('relocation')).toContainText('A replica moves: its servers lack room for its new SLA')
  await expect(page.getByRole('row', { name: /s6.*Catching up/ })).toBeVisible()
  await expectAccessible(page)
})

test('a group without appends says so', async ({ page }) => {
  await openSignedIn(page, GROUPS.featureFlags)
  await expect(page.getByText('no appends now')).toBeVisible()
  await page.getByRole('link', { name: 'Metrics' }).click()
  await expect(page.getByRole('heading', { name: 'No minutes to show yet' })).toBeVisible()
  await page.getByRole('link', { name: 'SLA', exact: true }).click()
  await expect(page.getByRole('heading', { name: /Nothing counted in/ })).toBeVisible()
})

test('metrics: the range lives in the address, and there is a table', async ({ page }) => {
  await openSignedIn(page, `${GROUPS.orders}/metrics`)
  await expect(page.getByRole('img', { name: /Throughput of 60 minutes/ })).toBeVisible()
  await page.getByRole('link', { name: '6 hours' }).click()
  await expect(page).toHaveURL(/minutes=360/)
  await expect(page.getByRole('img', { name: /Throughput of 360 minutes/ })).toBeVisible()
  await page.getByText('The last 60 minutes as a table').click()
  await expect(page.getByRole('table', { name: 'Metrics per minute, newest first' }).getByRole('row')).toHaveCount(61)
})

test('SLA: a missed clause, its incidents and its credit', async ({ page }) => {
  await openSignedIn(page, `${GROUPS.sessions}/sla`)
  await page.getByLabel('Month').selectOption({ index: 1 })
  await expect(page).toHaveURL(/month=\d{4}-\d{2}/)
  await expect(page.getByText('Throughput missed: 10 % credit')).toBeVisible()
  await expect(page.getByRole('heading', { name: 'Availability' })).toBeVisible()
  await expect(page.getByText('Requests within the reservation were throttled')).toBeVisible()
  await expect(page.getByRole('heading', { name: 'Corrections' })).toBeVisible()
  await expect(page.getByText('A switch of the region was down.', { exact: true })).toBeVisible()
  await page.getByRole('button', { name: 'Show what was measured in each minute' }).click()
  const minutes = page.getByRole('table', { name: 'Minutes that missed a clause' })
  await expect(minutes.getByRole('row').nth(1)).toContainText(/UTC/)
  await expect(minutes.getByText('412').first()).toBeVisible()
  const shown = await minutes.getByRole('row').count()
  await page.getByRole('button', { name: 'Show later' }).click()
  await expect.poll(() => minutes.getByRole('row').count()).toBeGreaterThan(shown)
  await expectAccessible(page)
})

test('deleting needs the name, typed', async ({ page }) => {
  await openSignedIn(page, `${GROUPS.auditTrail}/settings`)
  await page.getByRole('button', { name: 'Delete group' }).click()
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByRole('button', { name: 'Delete for good' })).toHaveAttribute('aria-disabled', 'true')
  await dialog.getByLabel(/to confirm/).fill('audit-trail')
  await dialog.getByRole('button', { name: 'Delete for good' }).click()
  await expect(page).toHaveURL(`/projects/${PROJECTS.production}/groups`)
  await expect(page.getByRole('row', { name: /orders/ })).toBeVisible()
  await expect(page.getByRole('row', { name: /audit-trail/ })).toHaveCount(0)
  await page.goto(GROUPS.auditTrail)
  await expect(page.getByRole('heading', { name: 'Not found' })).toBeVisible()
})

test('a lost group says so, and is reset when its owner discards the log by name', async ({ page }) => {
  await openSignedIn(page, GROUPS.presence)
  await expect(page.getByText('Nothing of its log is left.')).toBeVisible()
  await page.getByRole('button', { name: 'Reset group' }).click()
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByText('discarded for good')).toBeVisible()
  await expectAccessible(page)
  await expect(dialog.getByRole('button', { name: 'Discard the old log' })).toHaveAttribute('aria-disabled', 'true')
  await dialog.getByLabel(/to confirm/).fill('presence')
  await dialog.getByRole('button', { name: 'Discard the old log' }).click()
  await expect(dialog).toHaveCount(0)
  await expect(page.getByText('Nothing of its log is left.')).toHaveCount(0)
  await expect(page.getByText('Active', { exact: true }).first()).toBeVisible()
})

test('a group is renamed and protected, and its project renamed', async ({ page }) => {
  await openSignedIn(page, `${GROUPS.auditTrail}/settings`)
  await page.getByRole('button', { name: 'Rename audit-trail' }).click()
  const dialog = page.getByRole('dialog', { name: 'Rename audit-trail' })
  await expect(dialog.getByRole('button', { name: 'Rename' })).toHaveAttribute('aria-disabled', 'true')
  await dialog.getByLabel('Name').fill('orders')
  await dialog.getByRole('button', { name: 'Rename' }).click()
  await expect(dialog.getByText('Another one has this name.')).toBeVisible()
  await dialog.getByLabel('Name').fill('changes')
  await expectAccessible(page)
  await dialog.getByRole('button', { name: 'Rename' }).click()
  await expect(page.getByRole('heading', { name: 'changes', level: 1 })).toBeVisible()

  await page.getByRole('button', { name: 'Protect from deletion' }).click()
  await expect(page.getByText('It is protected: nobody deletes it')).toBeVisible()
  await expect(page.getByRole('button', { name: 'Delete group' })).toHaveAttribute('aria-disabled', 'true')
  await expectAccessible(page)
  await page.getByRole('button', { name: 'Take the protection away' }).click()
  await expect(page.getByRole('button', { name: 'Delete group' })).not.toHaveAttribute('aria-disabled', 'true')

  await page.getByRole('button', { name: /switch project/ }).click()
  await page.getByRole('menuitem', { name: 'Rename production' }).click()
  const renaming = page.getByRole('dialog', { name: 'Rename production' })
  await renaming.getByLabel('Name').fill('live')
  await renaming.getByRole('button', { name: 'Rename' }).click()
  await expect(page.getByRole('button', { name: 'Project live, switch project' })).toBeVisible()
})
