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
    // The answered one stays in its place while the focus is in the list.
    await items.first().getByText('Allowed for the session').waitFor()
    await menu.getByText('4 need attention').waitFor()
    await menu.getByRole('link', { name: 'Approvals' }).focus()
    await expect.poll(() => items.count()).toBe(1)
    // Users without an inbox have the count beside the page, and a section on the overview.
    await using guest = await visit(browser, server.origin, 'dev')
    await guest.page.getByRole('navigation', { name: 'Pages' }).getByText('1 waiting').waitFor()
    await guest.page.getByRole('heading', { name: 'Waiting for approval' }).waitFor()
    expect([...visitor.troubles, ...guest.troubles]).toEqual([])
  })

  test('V8: a call that ends under the pointer or in the dialog stays, so that no click answers another one', async () => {
    await using open = new AsyncDisposableStack()
    const browser = open.adopt(await openBrowser(), (one) => one.close())
    const server = open.use(await openScene('crowded'))
    await using visitor = await visit(browser, server.origin, 'operator', { at: '/approvals' })
    const { page } = visitor
    const answerElsewhere = (id: string) =>
      page.evaluate(`fetch('/admin/api/approvals/${id}', {
        method: 'POST',
        headers: { 'Toolway-Admin': '1', 'Content-Type': 'application/json' },
        body: '{"decision":"deny"}',
      }).then(({ ok }) => ok)`)
    for (const path of ['/approvals', '/']) {
      await visitor.follow(path)
      const items = page.getByRole('list', { name: 'Calls waiting for approval' }).getByRole('listitem')
      const first = items.first()
      const waiting = items.filter({ has: page.getByRole('timer') })
      const allow = first.getByRole('button', { name: 'Allow once' })
      await allow.hover()
      const count = await waiting.count()
      expect(await answerElsewhere(path === '/' ? 'approval-2' : 'approval-0')).toBe(true)
      await first.getByText('No longer waiting').waitFor()
      // The overview shows the first three that wait.
      await expect.poll(() => waiting.count()).toBe(path === '/' ? count : count - 1)
      await page.mouse.down()
      await page.mouse.up()
      expect(await allow.getAttribute('aria-disabled')).toBe('true')

      await items.nth(1).getByRole('button', { name: 'Deny…' }).click()
      await page.getByLabel('Reason').fill('Not today.')
      expect(await answerElsewhere(path === '/' ? 'approval-3' : 'approval-1')).toBe(true)
      await page.getByRole('alert').getByText('This call no longer waits').waitFor()
      expect(await page.getByLabel('Reason').inputValue()).toBe('Not today.')
      expect(await page.getByRole('dialog').getByRole('button', { name: 'Deny' }).isDisabled()).toBe(true)
      await page.getByRole('button', { name: 'Close' }).click()
      await page.getByRole('heading', { level: 1 }).hover()
      await page.evaluate('document.activeElement.blur()')
      await first.getByRole('timer').waitFor()
    }
    const left = await page.evaluate(`fetch('/admin/api/approvals').then((response) => response.json())`)
    expect((left as { id: string }[]).map(({ id }) => id)).toEqual(
      Array.from({ length: 8 }, (_, index) => `approval-${index + 4}`),
    )
    expect(visitor.troubles).toEqual([])
  })

  test('V8: the overview shows calls that wait, also while the pointer rests on calls that ended', async () => {
    await using open = new AsyncDisposableStack()
    const browser = open.adopt(await openBrowser(), (one) => one.close())
    const server = open.use(await openScene('crowded'))
    await using visitor = await visit(browser, server.origin, 'operator')
    const { page } = visitor
    const items = page.getByRole('list', { name: 'Calls waiting for approval' }).getByRole('listitem')
    const waiting = items.filter({ has: page.getByRole('timer') })
    await items.first().getByRole('button', { name: 'Allow once' }).hover()
    for (const id of [0, 1, 2]) {
      await page.evaluate(`fetch('/admin/api/approvals/approval-${id}', {
        method: 'POST',
        headers: { 'Toolway-Admin': '1', 'Content-Type': 'application/json' },
        body: '{"decision":"deny"}',
      })`)
    }
    await expect.poll(() => items.filter({ hasText: 'No longer waiting' }).count()).toBe(3)
    await expect.poll(() => waiting.count()).toBe(3)
  })
})
