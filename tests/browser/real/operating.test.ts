import { afterAll, beforeAll, expect, test } from 'vitest'
import { inBrowser } from '../in-browser.ts'
import { expectFits, expectWhole, go, row, rows, tile, title } from './pages.ts'
import { openWorld, type World } from './world.ts'

inBrowser('G10: an operator', () => {
  let world: World
  beforeAll(async () => {
    world = await openWorld()
  })
  afterAll(() => world[Symbol.asyncDispose]())

  const call = (tool: string, args = {}) => world.client.callTool(tool, args).catch((error: unknown) => error)

  test('sees statistics grow while agents make calls', async () => {
    const visitor = await world.shared.at('/')
    const { page } = visitor
    await title(page, 'Overview')
    const calls = async () => Number.parseFloat((await tile(page, 'Calls per second')) ?? '')
    await expect.poll(calls).toBeGreaterThanOrEqual(0)
    const before = await calls()
    await Promise.all(Array.from({ length: 60 }, (_, b) => call('everything__get-sum', { a: 1, b })))
    await expect.poll(calls, { timeout: 10_000 }).toBeGreaterThanOrEqual(before + 0.9)
    await page.getByRole('link', { name: 'All 5 servers' }).waitFor()
    await page.reload()
    await row(page, 'Statistics by server', 'everything')
    await page.getByRole('button', { name: 'Tool', exact: true }).click()
    await row(page, 'Statistics by tool', 'everything.get-sum')
    await expectFits(visitor)
  })

  test('restarts a server: a new process, one more restart', async () => {
    const visitor = await world.shared.at()
    const { page } = visitor
    await go(page, 'Servers')
    await page.getByRole('link', { name: 'memory', exact: true }).click()
    await title(page, 'memory')
    const process = page.locator('dt', { hasText: 'Process' }).locator('+ dd')
    const before = await process.locator('code').textContent()
    await page.getByText('Knowledge Graph MCP Server running on stdio').waitFor()
    await page.getByRole('button', { name: 'Restart' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Restart' }).click()
    await page.getByRole('status').getByText('Restarted memory').waitFor()
    await process.getByText('1 restart').waitFor()
    await expect.poll(() => process.locator('code').textContent()).not.toBe(before)
    await expectWhole(visitor)
  })

  test('turns a server off and on: its tools disappear and return', async () => {
    const visitor = await world.shared.at()
    const { page } = visitor
    await go(page, 'Servers')
    await page.getByRole('link', { name: 'filesystem', exact: true }).click()
    await page.getByRole('button', { name: 'Turn off' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Turn off' }).click()
    await page.getByRole('button', { name: 'Turn on' }).waitFor()
    await expectWhole(visitor)
    await go(page, 'Servers')
    await row(page, 'Servers', 'filesystem', 'turned off')
    await go(page, 'Tools')
    await row(page, 'Tools', 'memory__read_graph')
    expect(await rows(page, 'Tools', 'filesystem__').count()).toBe(0)
    await visitor.follow('/servers/filesystem')
    await page.getByRole('button', { name: 'Turn on' }).click()
    await page.getByRole('button', { name: 'Turn off' }).waitFor()
    await page.getByRole('link', { name: 'View tools' }).click()
    await row(page, 'Tools', 'filesystem__read_text_file')
    expect(visitor.troubles).toEqual([])
  })

  test('J3: sees a breaker open, reject calls and close again', async () => {
    await using glance = await world.visit()
    const visitor = await world.shared.at()
    const { page } = visitor
    await go(page, 'Servers')
    await row(page, 'Servers', 'orders', 'closed')
    for (let failed = 0; failed < 3; failed++) await call('orders__failure')
    const attention = glance.page.getByRole('list', { name: 'Needs attention' }).getByRole('listitem')
    const warning = attention.filter({ hasText: 'orders is not working' })
    await Promise.all([warning.waitFor(), row(page, 'Servers', 'orders', /(?<!half-)open/)])
    await call('orders__echo', { message: 'too early' })
    await page.getByRole('link', { name: 'orders', exact: true }).click()
    await title(page, 'orders')
    await page.getByRole('link', { name: 'View calls' }).click()
    await row(page, 'Calls', 'orders.echo', 'CIRCUIT_OPEN')
    await expectWhole(visitor)

    await attention.filter({ hasText: /orders is degraded.*half-open/ }).waitFor()
    await expectWhole(glance)
    // The list stops while the pointer is on it.
    await page.mouse.move(0, 0)
    await call('orders__echo', { message: 'again' })
    await row(page, 'Calls', 'orders.echo', 'answered')
    await attention.filter({ hasText: 'orders' }).waitFor({ state: 'detached' })
    await go(page, 'Servers')
    await row(page, 'Servers', 'orders', 'closed')
    expect([...visitor.troubles, ...glance.troubles]).toEqual([])
  })
})
