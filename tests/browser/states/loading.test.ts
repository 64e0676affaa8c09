import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { openScene, type SceneServer } from '../stand-in/server.ts'
import { emptyPage, visit } from '../visit.ts'

/** The bound for the overview: main script and charts. */
const maxBytes = 75 * 1024

inBrowser('G10: loading', () => {
  let browser: Browser
  let server: SceneServer
  beforeAll(async () => {
    browser = await openBrowser()
    server = await openScene('usual')
  })
  afterAll(async () => {
    await browser.close()
    await server[Symbol.asyncDispose]()
  })

  test('G10: the overview needs at most 75 KB of JavaScript, compressed, in few files', async () => {
    await using visitor = await visit(browser, server.origin)
    const { page } = visitor
    const scripts: Promise<Buffer>[] = []
    page.on('response', (response) => {
      if (response.request().resourceType() === 'script') scripts.push(response.body())
    })
    await page.goto('/#token=operator')
    await page.locator('.uplot').first().waitFor()
    const bytes = (await Promise.all(scripts)).map((script) => gzipSync(script).length)
    expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(maxBytes)
    expect(bytes.length).toBeLessThanOrEqual(4)
  })

  test('G10: a page whose code is gone after an update says so, and works after a reload', async () => {
    await using visitor = await visit(browser, server.origin, 'operator', { at: emptyPage })
    const { page } = visitor
    await page.route(/\/assets\/servers-/, (route) => route.fulfill({ status: 404 }))
    await page.keyboard.press('g')
    await page.keyboard.press('s')
    await page.getByRole('heading', { level: 1, name: 'This page could not be loaded' }).waitFor()
    await expect.poll(() => page.evaluate('document.activeElement.tagName')).toBe('H1')
    expect(await visitor.axe()).toEqual([])
    await page.unroute(/\/assets\/servers-/)
    await page.getByRole('button', { name: 'Reload the dashboard' }).click()
    await page.getByRole('heading', { level: 1, name: 'Servers' }).waitFor()
  })

  test('G10: charts whose code cannot be loaded say so, and one retry is enough for all', async () => {
    await using visitor = await visit(browser, server.origin, 'operator', { at: emptyPage })
    const { page } = visitor
    await page.route(/\/assets\/plot-/, (route) => route.abort())
    await page.keyboard.press('g')
    await page.keyboard.press('o')
    const charts = page.locator('.chart')
    const failures = charts.getByRole('alert').filter({ hasText: 'Could not load the chart.' })
    await failures.first().waitFor()
    await expect.poll(() => failures.count()).toBe(await charts.count())
    expect(await visitor.axe()).toEqual([])
    await charts.getByRole('button', { name: 'Table of' }).first().click()
    await charts.getByRole('table').waitFor()
    await page.unroute(/\/assets\/plot-/)
    await failures.getByRole('button', { name: 'Try again' }).last().click()
    await expect.poll(() => failures.count()).toBe(0)
    await page.locator('.uplot').first().waitFor()
  })

  test('G10: headers sort a table, and the address keeps the order', async () => {
    await using visitor = await visit(browser, server.origin, 'operator', { at: '/servers' })
    const { page } = visitor
    const names = () => page.locator('tbody .row-link').allTextContents()
    const header = page.getByRole('columnheader', { name: 'Server' })
    await header.getByRole('button').press('Enter')
    expect(await header.getAttribute('aria-sort')).toBe('ascending')
    const ascending = await names()
    expect(ascending).toEqual(ascending.toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true })))
    await header.getByRole('button').press('Enter')
    expect(new URL(page.url()).searchParams.get('sort')).toBe('-server')
    await page.reload()
    await expect.poll(names).toEqual(ascending.toReversed())
    await header.getByRole('button').press('Enter')
    expect(await header.getAttribute('aria-sort')).toBeNull()
    expect(new URL(page.url()).search).toBe('')
  })

  test('G10: figures are placeholders until they are loaded, also for another range, and never zero', async () => {
    await using visitor = await visit(browser, server.origin, 'operator', { at: emptyPage })
    const { page } = visitor
    let released = Promise.withResolvers<void>()
    await page.route('**/admin/api/stats?*', async (route) => {
      await released.promise
      await route.continue()
    })
    const figures = () => page.locator('.tile-value').allTextContents()
    await visitor.follow('/servers/filesystem')
    await expect.poll(figures).toEqual(Array(6).fill('…'))
    expect(await visitor.axe()).toEqual([])
    released.resolve()
    await expect.poll(async () => (await figures()).includes('…')).toBe(false)
    released = Promise.withResolvers()
    await page.getByRole('button', { name: '1 h', exact: true }).click()
    await expect.poll(figures).toEqual(Array(6).fill('…'))
    await visitor.follow('/servers')
    const cells = page.locator('tbody tr').first().getByRole('cell', { name: '…', exact: true })
    await expect.poll(() => cells.count()).toBe(3)
    released.resolve()
    await expect.poll(() => cells.count()).toBe(0)
  })

  test('F11: a search of the audit log that takes long, because the index is built, says so', async () => {
    await using visitor = await visit(browser, server.origin, 'operator', { at: emptyPage })
    const { page } = visitor
    const released = Promise.withResolvers<void>()
    await page.route('**/admin/api/audit?*', async (route) => {
      await released.promise
      await route.continue()
    })
    await visitor.follow('/audit?agent=ci')
    const note = page.getByText('Toolway indexes records before it searches them')
    await note.waitFor()
    expect(await visitor.axe()).toEqual([])
    released.resolve()
    await note.waitFor({ state: 'detached' })
  })
})
