import { afterAll, beforeAll, expect, test } from 'vitest'
import { stdioServers } from '../../fixtures/servers.ts'
import { inBrowser } from '../in-browser.ts'
import { type Visit, visit } from '../visit.ts'
import { expectFits, expectWhole, go, row, rows, tile, title } from './pages.ts'
import { type BrowserSetup, openBrowserSetup } from './setup.ts'

/** For all tests of this file: starting its servers takes longer than most tests. */
let opening: Promise<BrowserSetup> | undefined
let setup: BrowserSetup
const open = async () => {
  opening ??= openBrowserSetup()
  setup = await opening
}
afterAll(async () => (await opening)?.[Symbol.asyncDispose]())

inBrowser('G10: a real gateway', () => {
  /** Not signed in. */
  let visitor: Visit
  beforeAll(async () => {
    await open()
    visitor = await visit(setup.browser, setup.origin)
  })
  afterAll(() => visitor[Symbol.asyncDispose]())

  test('asks for a token, rejects a wrong one, and then opens the requested page', async () => {
    const { page } = visitor
    await page.goto('/servers/memory')
    await title(page, 'Sign in')
    await expectWhole(visitor)
    await page.getByLabel('Token or API key').fill('not the token')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').getByText('Invalid or expired token').waitFor()
    await page.getByLabel('Token or API key').fill(setup.toolway.token)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await title(page, 'memory')
    expect(await page.evaluate('document.cookie')).toBe('')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await title(page, 'Sign in')
    await page.reload()
    await title(page, 'Sign in')
    expect(visitor.troubles).toEqual([])
  })

  test('every page has no axe violations, no overflow and no script errors', async () => {
    const { client } = setup
    await client.callTool('everything__echo', { message: 'hello' })
    await client.callTool('filesystem__list_directory', { path: setup.files })
    const { page } = visitor
    await page.emulateMedia({ colorScheme: 'light' })
    await page.goto(`/#token=${setup.toolway.token}`)
    const link = (name: string) => page.getByRole('link', { name, exact: true }).first().click()
    const tab = (name: string) => page.getByRole('tab', { name, exact: true }).click()

    await title(page, 'Overview')
    await page.getByRole('img', { name: /^Calls per second\./ }).waitFor()
    await expectWhole(visitor)
    await go(page, 'Servers')
    await expectWhole(visitor)
    await link('filesystem')
    await title(page, 'filesystem')
    await expectWhole(visitor)
    await link('View tools')
    await title(page, 'Tools')
    await expectWhole(visitor)
    await link('filesystem__edit_file')
    await title(page, 'filesystem__edit_file')
    await expectWhole(visitor)
    for (const name of ['Try it', 'Who may use it']) {
      await tab(name)
      await expectWhole(visitor)
    }
    await go(page, 'Calls')
    await link('everything.echo')
    await page.getByRole('complementary', { name: 'Call' }).getByText('Timeline').waitFor()
    await expectWhole(visitor)
    await go(page, 'Policy')
    for (const name of ['Permissions', 'Why', 'Agents']) {
      await tab(name)
      await expectWhole(visitor)
    }
    await go(page, 'Audit')
    await link('everything.echo')
    await page.getByRole('complementary', { name: 'Audit record' }).waitFor()
    await expectWhole(visitor)
    await go(page, 'Configuration')
    await expectWhole(visitor)
    await visitor.follow('/errors/CIRCUIT_OPEN')
    await title(page, 'CIRCUIT_OPEN')
    await expectWhole(visitor)
    await visitor.follow('/nowhere')
    await title(page, 'Page not found')
    await expectWhole(visitor)
  })
})

inBrowser('G10: an operator', () => {
  beforeAll(open)

  const call = (tool: string, args = {}) => setup.client.callTool(tool, args).catch((error: unknown) => error)

  test('sees statistics grow while agents make calls', async () => {
    const visitor = await setup.shared.at('/')
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
    const visitor = await setup.shared.at()
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
    const visitor = await setup.shared.at()
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
    await using glance = await setup.visit()
    const visitor = await setup.shared.at()
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

inBrowser('G8: configuration reload', () => {
  beforeAll(open)

  const withServers = (mcpServers: object) => ({
    ...setup.config,
    mcpServers: { ...setup.config.mcpServers, ...mcpServers },
  })

  test('a new server appears automatically, the history lists changes, and an invalid configuration shows its error', async () => {
    const visitor = await setup.shared.at('/config')
    await using other = await setup.visit({ at: '/servers' })
    const { page } = visitor
    await title(page, 'Configuration')
    await page.getByText('None since Toolway started').waitFor()
    await row(other.page, 'Servers', 'memory')
    expect(await rows(other.page, 'Servers', 'extra').count()).toBe(0)

    await setup.toolway.rewrite(withServers({ extra: stdioServers.manyTools('extra', 3) }))
    await page.getByText('server extra added').waitFor()
    await page.getByText(/^1 of \d+ applied$/).waitFor()
    await other.page.getByRole('link', { name: 'extra', exact: true }).click()
    await page.getByRole('searchbox', { name: 'Search keys and values' }).fill('mcpServers.extra')
    await page.getByText('many-tools-server').first().waitFor()
    await expectWhole(visitor)
    await go(page, 'Tools')
    await page.getByRole('searchbox', { name: 'Search tools' }).fill('extra')
    await page.getByRole('heading', { name: 'No matching tools' }).waitFor()
    // The server connects on first use, so its tools are not known yet; the open list updates.
    await other.page.getByRole('button', { name: 'Refresh tools' }).click()
    await row(page, 'Tools', 'extra__tool_1')
    await go(other.page, 'Servers')

    await setup.toolway.rewrite({ ...setup.config, limits: { perMinute: 'many' } })
    await go(page, 'Configuration')
    const reason = page.getByRole('alert')
    await reason.getByText('The last reload failed').waitFor()
    await reason.getByText('limits.perMinute').first().waitFor()
    await page.getByText('rejected', { exact: true }).first().waitFor()
    await expectWhole(visitor)
    await go(page, 'Overview')
    await page.getByText('the previous configuration is still active').waitFor()
    await row(other.page, 'Servers', 'extra')
    await expectWhole(visitor)

    await setup.toolway.rewrite(setup.config)
    await go(page, 'Configuration')
    await page.getByText('server extra removed').waitFor()
    await page.getByRole('button', { name: 'Reload now' }).click()
    await page.getByRole('status').getByText('Reloaded: no effective changes.').waitFor()
    await expect.poll(() => rows(other.page, 'Servers', 'extra').count()).toBe(0)
    expect([...visitor.troubles, ...other.troubles]).toEqual([])
  })
})
