import { afterAll, beforeAll, expect, test } from 'vitest'
import { stdioServers } from '../../fixtures/servers.ts'
import { openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { type Visit, visit } from '../visit.ts'
import { expectFits, expectWhole, jump, press, row, tabTo, title } from './pages.ts'
import { type Served, servedToPeople } from './printed-link.ts'

inBrowser('G10: the first run', () => {
  const open = new AsyncDisposableStack()
  let served: Served
  let visitor: Visit
  beforeAll(async () => {
    served = open.use(await servedToPeople())
    const browser = open.adopt(await openBrowser(), (one) => one.close())
    visitor = await visit(browser, new URL(served.link).origin)
    await visitor.page.goto(served.link)
  })
  afterAll(() => open.disposeAsync())

  test('B6: the link that `toolway serve` prints signs in, and the token leaves the address', async () => {
    const { link } = served
    expect(link).toContain('/#token=')
    const { page } = visitor
    await title(page, 'Overview')
    expect(page.url()).toBe(`${new URL(link).origin}/`)
    await page.getByRole('heading', { name: 'First steps' }).waitFor()
    await expectFits(visitor)
  })

  test('V9: without a configuration, the keyboard alone leads from no servers to the first call', async () => {
    const { page } = visitor
    const step = (name: string) => page.locator('.steps > li', { hasText: name })
    const isDone = async (name: string) => (await step(name).getAttribute('data-done')) !== null
    await step('Add a server').getByText('No servers yet').waitFor()
    await expectWhole(visitor)

    await press(page, step('Add a server').getByRole('button', { name: 'Add server' }))
    const dialog = page.getByRole('dialog')
    await tabTo(page, dialog.getByRole('textbox', { name: /Command, URL/ }))
    await page.keyboard.insertText(JSON.stringify({ mcpServers: { everything: stdioServers.everything() } }))
    await press(page, dialog.getByRole('button', { name: 'Test' }))
    await dialog.getByText(/\d+ tools/).waitFor()
    await press(page, dialog.getByRole('button', { name: 'Review' }))
    await dialog.getByRole('group', { name: /^Changes to/ }).waitFor()
    await press(page, dialog.getByRole('button', { name: 'Save' }))
    await dialog.waitFor({ state: 'detached' })
    await expect.poll(() => isDone('Add a server')).toBe(true)
    expect(await isDone('Make the first call')).toBe(false)
    expect(await isDone('Connect a client')).toBe(false)

    await press(page, step('Make the first call').getByRole('link'))
    await title(page, 'Tools')
    await press(page, page.getByRole('link', { name: 'everything__echo', exact: true }))
    await title(page, 'everything__echo')
    await tabTo(page, page.getByRole('tab', { name: 'Definition' }))
    await page.keyboard.press('ArrowRight')
    await tabTo(page, page.getByLabel('message'))
    await page.keyboard.type('the first call')
    await press(page, page.getByRole('button', { name: 'Run', exact: true }))
    await page.getByTestId('outcome').getByText('Echo: the first call').waitFor()

    await jump(page, 'calls', /^Calls/)
    await title(page, 'Calls')
    await row(page, 'Calls', 'everything.echo', 'answered')
    const link = await page.getByRole('link', { name: 'everything.echo' }).getAttribute('href')
    const id = link?.split('/').at(-1)?.split('?')[0] ?? ''
    await jump(page, 'everything', /^everything .*server$/)
    await title(page, 'everything')
    await jump(page, id, new RegExp(id))
    await page.getByRole('complementary', { name: 'Call' }).getByText('Timeline').waitFor()
    await jump(page, 'overview', /^Overview/)
    await title(page, 'Overview')
    await page.getByRole('heading', { name: 'Connect a client' }).waitFor()
    expect(await page.locator('.steps').count()).toBe(0)
    expect(visitor.troubles).toEqual([])
  })
})
