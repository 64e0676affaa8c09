import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { openScene } from '../stand-in/server.ts'
import { visit } from '../visit.ts'

inBrowser('V11: the list of calls', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser.close())

  test('G10: calls are sorted, counted and paged over all of them; filters and the order are in the address', async () => {
    await using server = await openScene('busy')
    await using visitor = await visit(browser, server.origin, 'operator', { at: '/calls' })
    const { page } = visitor
    const rows = page.locator('tbody tr')
    await expect.poll(() => rows.count()).toBe(50)
    // Only the oldest call is by this agent.
    const agent = page.getByRole('combobox', { name: 'Agent' })
    await agent.selectOption('retired')
    await page.getByText('1 call', { exact: true }).waitFor()
    await agent.selectOption('')
    await page.getByText(/^10,0\d\d calls$/).waitFor()
    const pages = page.getByRole('navigation', { name: 'Pages of the list' })
    await pages.getByRole('button', { name: 'Next' }).click()
    await pages.getByText(/^2 of 20[01]$/).waitFor()
    expect(await rows.count()).toBe(50)
    // The slowest one is the oldest of all.
    await page.getByRole('button', { name: 'Duration' }).click()
    await pages.getByText(/^1 of 20[01]$/).waitFor()
    await expect.poll(() => rows.first().locator('td').last().textContent()).toBe('59 min')
    expect(new URL(page.url()).searchParams.get('sort')).toBe('-duration')
    await page.getByLabel('Outcome').selectOption('denied')
    await expect.poll(() => new URL(page.url()).searchParams.get('outcome')).toBe('denied')
    await expect.poll(() => rows.first().locator('td').last().textContent()).not.toBe('59 min')
    expect(await visitor.axe()).toEqual([])
    expect(visitor.troubles).toEqual([])
  })

  test('the list stands still under the pointer and while the focus is in it', async () => {
    await using server = await openScene('usual')
    await using visitor = await visit(browser, server.origin, 'operator', { at: '/calls' })
    const { page } = visitor
    const newest = () => page.locator('tbody tr').first().getByRole('link').getAttribute('href')
    const fresh = page.getByRole('button', { name: /^[1-9]\d* new$/ })
    await page.locator('tbody tr').nth(2).hover()
    const held = await newest()
    await fresh.waitFor()
    expect(await newest()).toBe(held)
    await page.mouse.move(5, 5)
    await expect.poll(newest).not.toBe(held)
    await page.locator('tbody tr').first().getByRole('link').focus()
    const focused = await newest()
    await fresh.waitFor()
    expect(await newest()).toBe(focused)
  })

  test('V11: other filters show calls that came while the list stood still', async () => {
    await using server = await openScene('usual')
    await using visitor = await visit(browser, server.origin, 'operator', { at: '/calls' })
    const { page } = visitor
    const newestAt = async () => Date.parse((await page.locator('tbody time').first().getAttribute('datetime')) ?? '')
    const fresh = page.getByRole('button', { name: /^[1-9]\d* new$/ })
    await page.locator('tbody tr').nth(2).hover()
    await fresh.waitFor()
    const heldAt = await newestAt()
    // All calls match these filters.
    await visitor.follow('/calls?to=2100-01-01T00:00:00Z')
    await expect.poll(newestAt).toBeGreaterThan(heldAt)
    // The pointer is still on the list.
    await fresh.waitFor()
  })

  test('a call that was loaded before the event stream has it stays under the pointer', async () => {
    await using server = await openScene('usual')
    await using visitor = await visit(browser, server.origin, 'operator', { at: '/calls', own: true })
    const { page } = visitor
    await page.route('**/admin/api/calls?*', async (route) => {
      const response = await route.fetch()
      const json = await response.json()
      const newer = { ...json.calls[0], id: 'call_newer', at: Date.now() + 60_000 }
      await route.fulfill({ response, json: { ...json, calls: [newer, ...json.calls] } })
    })
    await page.reload()
    const link = page.locator('tbody a[href="/calls/call_newer"]').first()
    await link.hover()
    // Calls that come now are held back.
    await page.getByRole('button', { name: /^[1-9]\d* new$/ }).waitFor()
    expect(await link.count()).toBe(1)
  })

  test('G10: targets can be read on a phone and beside an open call, and the page never scrolls sideways', async () => {
    await using server = await openScene('usual')
    const phone = { at: '/calls?outcome=denied', viewport: { width: 320, height: 740 } }
    await using visitor = await visit(browser, server.origin, 'operator', phone)
    const { page } = visitor
    const width = async () => (await page.getByRole('columnheader', { name: 'Target' }).boundingBox())?.width ?? 0
    const link = page.locator('tbody').getByRole('link').first()
    await link.waitFor()
    expect(await width()).toBeGreaterThan(75)
    // The stream never starts.
    await page.route('**/admin/api/events', () => undefined)
    await page.reload()
    await page.getByRole('banner').getByText('Reconnecting').waitFor()
    await link.waitFor()
    expect(await visitor.overflow()).toBe(0)
    await page.setViewportSize({ width: 1100, height: 740 })
    await link.click()
    await page.getByRole('complementary', { name: 'Call' }).waitFor()
    expect(await width()).toBeGreaterThan(100)
  })

  test('a call shows what was captured at 390 px and in the dark', async () => {
    await using server = await openScene('usual')
    const options = { at: '/calls', colorScheme: 'dark', viewport: { width: 390, height: 800 } } as const
    await using visitor = await visit(browser, server.origin, 'operator', options)
    const { page } = visitor
    await page.locator('tbody tr').nth(3).getByRole('link').click()
    const call = page.getByRole('complementary', { name: 'Call' })
    await call.getByRole('heading', { name: 'Arguments' }).waitFor()
    await call.getByRole('button', { name: 'TypeScript' }).click()
    expect(await visitor.overflow()).toBe(0)
    expect(await visitor.axe()).toEqual([])
  })
})
