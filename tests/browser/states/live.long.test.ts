import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { openScene, type SceneServer } from '../stand-in/server.ts'
import { emptyPage, type SharedVisit, shareVisit, visit } from '../visit.ts'

inBrowser('G10: live pages', () => {
  let browser: Browser
  let server: SceneServer
  let shared: SharedVisit
  beforeAll(async () => {
    browser = await openBrowser()
    server = await openScene('usual')
    shared = shareVisit(() => visit(browser, server.origin, 'operator', { at: emptyPage }))
  })
  afterAll(async () => {
    await browser.close()
    await server[Symbol.asyncDispose]()
  })

  test('G10: calls appear live; a paused list does not change and counts new calls', async () => {
    const visitor = await shared.at('/calls')
    const { page } = visitor
    const newest = () => page.locator('tbody tr').first().getByRole('link').getAttribute('href')
    await page.locator('tbody tr').first().waitFor()
    const first = await newest()
    await expect.poll(newest).not.toBe(first)
    await page.getByRole('button', { name: 'Pause' }).click()
    const held = await newest()
    await page.getByText(/^[1-9]\d* new$/).waitFor()
    expect(await newest()).toBe(held)
    await page.getByRole('button', { name: 'Resume' }).click()
    await expect.poll(newest).not.toBe(held)
  })

  test('G10: a call opens its timeline and record; filters stay in the address', async () => {
    const visitor = await shared.at('/calls')
    const { page } = visitor
    await page.getByLabel('Outcome').selectOption('failed')
    await expect.poll(() => page.url()).toContain('outcome=failed')
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.locator('tbody tr').first().getByRole('link').click()
    const call = page.getByRole('complementary', { name: 'Call' })
    await call.getByText('attempt 1').waitFor()
    await call.getByText('attempt 2').waitFor()
    await call.getByText('latency_ms').waitFor()
    expect(page.url()).toContain('outcome=failed')
    await call.getByRole('link', { name: 'Close call' }).click()
    await call.waitFor({ state: 'detached' })
    expect(page.url()).toMatch(/\/calls\?outcome=failed$/)
  })

  test('G10: when Toolway stops, the dashboard shows it, keeps its data and reconnects', async () => {
    const first = await openScene('usual')
    const port = Number(new URL(first.origin).port)
    await using visitor = await visit(browser, first.origin, 'operator', { at: '/servers' })
    const { page } = visitor
    const state = (word: string) =>
      page.getByRole('complementary', { name: 'Toolway' }).getByText(word, { exact: true })
    await state('Live').waitFor()
    await first[Symbol.asyncDispose]()
    await state('Reconnecting').waitFor()
    await state('Offline').waitFor()
    expect(await page.getByRole('link', { name: 'filesystem' }).isVisible()).toBe(true)
    const banner = page.getByRole('alert').filter({ hasText: 'Toolway does not answer.' })
    await banner.waitFor()
    expect(await banner.boundingBox()).toMatchObject({ x: 0, y: 0, width: page.viewportSize()?.width })
    const filter = () => page.evaluate(`getComputedStyle(document.querySelector('.page > .card')).filter`)
    expect(await filter()).toBe('grayscale(1)')
    expect(await visitor.axe()).toEqual([])
    await using _second = await openScene('usual', port)
    // Sessions end with the process, so the user has to sign in again.
    await page.getByLabel('Token or API key').fill('operator', { timeout: 30_000 })
    await page.keyboard.press('Enter')
    await state('Live').waitFor()
    await banner.waitFor({ state: 'detached' })
    expect(await filter()).toBe('none')
  })

  test('G10: while the event stream is down, a list shows what was loaded since', async () => {
    await using visitor = await visit(browser, server.origin, 'operator', { at: emptyPage })
    const { page } = visitor
    const noServers = { contentType: 'text/event-stream', body: 'event: servers\ndata: []\n\n' }
    let streams = 0
    await page.route('**/admin/api/events', (route) => (streams++ === 0 ? route.fulfill(noServers) : route.abort()))
    await page.route('**/admin/api/servers', (route) => route.abort())
    await page.goto('/servers')
    await page.getByText('No servers yet').waitFor()
    await expect.poll(() => streams).toBeGreaterThan(1)
    await page.unroute('**/admin/api/servers')
    await page.getByRole('button', { name: 'Refresh' }).click()
    await page.getByRole('link', { name: 'filesystem', exact: true }).waitFor()
  })

  test('G10: dragging across a chart selects a time range, which is in the address', async () => {
    const visitor = await shared.at('/')
    const { page } = visitor
    await page.getByRole('img', { name: /^Calls per second\. answered: / }).waitFor()
    const chart = page.locator('.u-over').first()
    await chart.hover({ position: { x: 50, y: 40 } })
    await page.mouse.down()
    await chart.hover({ position: { x: 200, y: 40 } })
    await page.mouse.up()
    await expect.poll(() => new URL(page.url()).searchParams.has('from')).toBe(true)
    const { searchParams } = new URL(page.url())
    await page.getByRole('link', { name: 'Calls in this range' }).click()
    await page.getByRole('heading', { level: 1, name: 'Calls' }).waitFor()
    expect(new URL(page.url()).searchParams.get('from')).toBe(searchParams.get('from'))
    await page.goBack()
    await page.getByRole('button', { name: '1 h', exact: true }).click()
    await expect.poll(() => new URL(page.url()).search).toBe('?range=1h')
    await page.getByRole('button', { name: 'Table of Latency' }).click()
    await page.getByRole('table', { name: 'Latency, newest first' }).waitFor()
  })

  test('V12: with the keyboard alone, a time range is zoomed and moved, and its calls are opened', async () => {
    const visitor = await shared.at('/?by=tool')
    const { page } = visitor
    const zoom = page.getByRole('group', { name: 'Zoom' })
    const range = () => {
      const { searchParams } = new URL(page.url())
      const [from, to] = ['from', 'to'].map((name) => Date.parse(searchParams.get(name) ?? ''))
      return { from: from as number, length: (to as number) - (from as number) }
    }
    const press = async (name: string) => {
      await zoom.getByRole('button', { name }).focus()
      await page.keyboard.press('Enter')
    }
    await press('Zoom in')
    await expect.poll(() => range().length).toBe(450_000)
    const { from } = range()
    await press('Earlier')
    await expect.poll(() => range().from).toBe(from - 225_000)
    await press('Later')
    await expect.poll(() => range().from).toBe(from)
    // The table covers the same range as the charts. A time of yesterday starts with its date.
    await page.getByText(/^Calls from .*\d\d:\d\d:\d\d/).waitFor()
    expect(await visitor.axe()).toEqual([])
    await page.getByRole('link', { name: 'Calls in this range' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Calls' }).waitFor()
    expect(range()).toEqual({ from, length: 450_000 })
  })

  test('V12: latencies have a logarithmic axis and a line of their own for cache hits; outcomes are stacked', async () => {
    await using visitor = await visit(browser, server.origin)
    const { page } = visitor
    // A canvas has no text, so collect the labels that are drawn.
    await page.addInitScript(`
      globalThis.drawn = []
      const { fillText } = CanvasRenderingContext2D.prototype
      CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        drawn.push(text)
        fillText.call(this, text, ...place)
      }`)
    await page.goto('/#token=operator')
    const outcomes = /^Calls per second\. answered: .*; tool errors: .*; denied: .*; failed: /
    await page.getByRole('img', { name: outcomes }).waitFor()
    await page.getByRole('img', { name: /^Latency\. p50: .*; p99: .*; cache hits: / }).waitFor()
    const labels = async () => (await page.evaluate('drawn')) as string[]
    // The same distance for each power of ten.
    const powers = ['1 ms', '10 ms', '100 ms']
    await expect.poll(async () => new Set(powers).difference(new Set(await labels())).size).toBe(0)
    expect(visitor.troubles).toEqual([])
  })

  test('V12: charts are drawn in a browser whose language is not a language tag', async () => {
    await using visitor = await visit(browser, server.origin)
    const { page } = visitor
    await page.addInitScript(
      `Object.defineProperty(navigator, 'language', { value: 'en-US@posix', configurable: true })`,
    )
    await page.goto('/#token=operator')
    await expect.poll(() => page.locator('.u-over').count()).toBe(4)
    expect(visitor.troubles).toEqual([])
  })

  test('G9: one click shows the slowest tools of the last hour; statistics say which period they cover', async () => {
    const visitor = await shared.at('/')
    const { page } = visitor
    await page.getByText('Calls in the last 15 minutes').waitFor()
    await page.getByRole('link', { name: 'Slowest tools in the last hour' }).click()
    await page.getByRole('region', { name: 'Statistics by tool' }).waitFor()
    await page.getByText('Calls in the last hour').waitFor()
    expect(await page.getByRole('columnheader', { name: 'p95' }).getAttribute('aria-sort')).toBe('descending')
    await visitor.follow('/servers?range=6h')
    await page.getByText('Calls, latencies and errors in the last 6 hours').waitFor()
    await visitor.follow('/servers/filesystem?range=7d')
    await page.getByText('Calls in the last 7 days').waitFor()
    // The request for 7 days may not have been sent yet.
    const asked = page.waitForRequest((request) => {
      const { pathname, searchParams } = new URL(request.url())
      const from = Number(searchParams.get('from'))
      return pathname.endsWith('/calls') && Math.abs(Date.now() - 30 * 86_400_000 - from) < 60_000
    })
    await page.getByRole('button', { name: '30 d', exact: true }).click()
    expect(new URL((await asked).url()).searchParams.get('server')).toBe('filesystem')
    expect(visitor.troubles).toEqual([])
  })

  test('G10: the pointer over one chart shows the values of all charts at that time', async () => {
    const { page } = await shared.at('/')
    await expect.poll(() => page.locator('.u-over').count()).toBe(4)
    const times = () => page.locator('.chart .card-head .quiet').allTextContents()
    const before = await times()
    const box = await page.locator('.u-over').first().boundingBox()
    if (!box) throw new Error('the chart is not on the page')
    await page.mouse.move(box.x + 60, box.y + 40)
    await expect.poll(async () => new Set(await times()).size === 1 && (await times())[0] !== before[0]).toBe(true)
  })

  test('G10: actions: turn a server off and on, verify the audit log, reload the configuration', async () => {
    const visitor = await shared.at('/servers/memory')
    const { page } = visitor
    await page.getByRole('button', { name: 'Turn off' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Turn off' }).click()
    await page.getByRole('button', { name: 'Turn on' }).click()
    await page.getByRole('button', { name: 'Restart' }).waitFor()
    await visitor.follow('/audit')
    await page.getByRole('button', { name: 'Verify' }).click()
    await page.getByText('intact').waitFor()
    await visitor.follow('/config')
    await page.getByRole('button', { name: 'Reload now' }).click()
    await page.getByRole('status').getByText('Reloaded: server memory added').waitFor()
    await page.getByRole('searchbox').fill('github.url')
    await page.getByText('https://mcp.example.com/mcp').waitFor()
    expect(visitor.troubles).toEqual([])
  })

  test('F11: an audit log that could not be verified is not called modified', async () => {
    const visitor = await shared.at()
    const { page } = visitor
    const problem = 'The audit log could not be verified.'
    const view = { state: 'unknown', checkedAt: null, records: null, problems: [problem] }
    await page.route(/\/audit\/chain$/, (route) => route.fulfill({ json: view }))
    await visitor.follow('/audit')
    await page.getByText(problem).waitFor()
    expect(await page.getByText('was modified').count()).toBe(0)
    await page.unroute(/\/audit\/chain$/)
  })

  test('G10: a link to an audit record opens it, also if it is not among the first ones', async () => {
    const visitor = await shared.at('/audit')
    const { page } = visitor
    const record = page.getByRole('complementary', { name: 'Audit record' })
    await page.getByRole('button', { name: 'Show more' }).click()
    await page.locator('tbody tr').nth(70).getByRole('link').click()
    const heading = await record.getByRole('heading').first().textContent()
    const call = await record.getByRole('link', { name: 'Call timeline' }).getAttribute('href')
    const address = new URL(page.url())
    await visitor.follow(emptyPage)
    await visitor.follow(address.pathname + address.search)
    await record.getByRole('heading', { name: heading ?? '' }).waitFor()
    expect(await record.getByRole('link', { name: 'Call timeline' }).getAttribute('href')).toBe(call)
    expect(await page.locator('tbody tr').count()).toBe(50)
    await record.getByRole('link', { name: 'Close record' }).click()
    await expect.poll(() => page.url()).toMatch(/\/audit$/)
    await visitor.follow('/audit?record=unknown:1')
    await page.getByText('The record unknown:1 was not found.').waitFor()
  })

  test('G6: each cell of the matrix links to its explanation', async () => {
    const visitor = await shared.at('/policy?view=matrix')
    const { page } = visitor
    await page.getByTitle('researcher, filesystem.write_file: why?').click()
    await page.getByRole('heading', { name: 'researcher may not use filesystem.write_file' }).waitFor()
    await page.getByLabel('Agent').fill('default')
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByRole('heading', { name: 'default may use filesystem.write_file' }).waitFor()
  })
})
