import { expect, test } from 'vitest'
import { openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { openScene } from '../stand-in/server.ts'
import { visit } from '../visit.ts'

inBrowser('V8: approvals', () => {
  test('V8: waiting calls are counted and answered; those that others must answer have no buttons', async () => {
    await using open = new AsyncDisposableStack()
    const browser = open.adopt(await openBrowser(), (one) => one.close())
    const server = open.use(await openScene('usual'))
    await using visitor = await visit(browser, server.origin, 'operator')
    const { page } = visitor
    const menu = page.getByRole('navigation', { name: 'Pages' })
    const list = page.getByRole('list', { name: 'Calls waiting for approval' })
    await menu.getByText('5 need attention').waitFor()
    await menu.getByRole('link', { name: 'Approvals' }).click()
    const items = list.getByRole('listitem')
    await expect.poll(() => items.count()).toBe(2)
    expect(
      await items
        .nth(1)
        .getByRole('button', { name: /Allow|Deny/ })
        .count(),
    ).toBe(0)
    // Escape closes the dialog without an answer, and the focus returns.
    await items.first().getByRole('button', { name: 'Deny…' }).press('Enter')
    await page.getByLabel('Reason').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('Deny…')
    await items.first().getByRole('button', { name: 'Allow for this session' }).press('Enter')
    await page.getByRole('status').getByText('Allowed for the session: filesystem.write_file.').waitFor()
    await expect.poll(() => items.count()).toBe(1)
    await menu.getByText('4 need attention').waitFor()
    // Users without an inbox have the count beside the page, and a section on the overview.
    await using guest = await visit(browser, server.origin, 'dev')
    await guest.page.getByRole('navigation', { name: 'Pages' }).getByText('1 waiting').waitFor()
    await guest.page.getByRole('heading', { name: 'Waiting for approval' }).waitFor()
    expect([...visitor.troubles, ...guest.troubles]).toEqual([])
  })
})
