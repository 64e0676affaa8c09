import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { converse } from '../../e2e/code-mode/conversation.ts'
import { connect } from '../../fixtures/clients.ts'
import { introduction } from '../../fixtures/line-server.ts'
import { json, result, rogueHttp } from '../../fixtures/rogue-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { type SharedVisit, shareVisit, visit } from '../visit.ts'
import { expectWhole, go, row, rows } from './pages.ts'

const tools = ['look', 'ask'].map((name) => ({
  name,
  inputSchema: {
    type: 'object',
    properties: { key: { type: 'string' }, file: { type: 'string', contentEncoding: 'base64' } },
  },
}))

/** A server that answers each key only at the second attempt. */
const failingOnce = () => {
  const seen = new Set<unknown>()
  return rogueHttp(({ method, message }, response) => {
    const { id, method: asked, params } = message ?? {}
    if (method !== 'POST') return response.writeHead(405).end()
    if (id === undefined) return response.writeHead(202).end()
    if (asked === 'initialize') return json(response, result(id, introduction('flaky')))
    if (asked === 'tools/list') return json(response, result(id, { tools }))
    if (asked !== 'tools/call') {
      const error = { code: -32601, message: 'Method not found' }
      return json(response, JSON.stringify({ jsonrpc: '2.0', id, error }))
    }
    const key = params?.arguments?.key
    if (!seen.has(key)) {
      seen.add(key)
      return response.writeHead(503).end()
    }
    const bytes = Buffer.from(String(params?.arguments?.file ?? ''), 'base64')
    return json(response, result(id, { content: [{ type: 'text', text: `found ${key} ${bytes.toString('hex')}` }] }))
  })
}

inBrowser('V11: the steps of real calls', () => {
  const open = new AsyncDisposableStack()
  let toolway: LocalToolway
  let shared: SharedVisit
  beforeAll(async () => {
    const flaky = open.use(await failingOnce())
    const browser = open.adopt(await openBrowser(), (one) => one.close())
    const allow = { servers: ['*'] }
    toolway = open.use(
      await startToolway({
        history: {},
        mcpServers: {
          flaky: { url: flaky.url, approve: ['ask'], readTools: ['look', 'ask'] },
          weather: stdioServers.weather(),
          arithmetic: stdioServers.arithmetic(),
        },
        retry: { attempts: 2, backoff: '1ms' },
        cache: { enabled: true },
        approvals: { wait: '2m' },
        sandbox: { minIsolation: 'worker' },
        defaults: { agent: 'default' },
        agents: { default: { allow }, coder: { allow, expose: 'code' }, planner: { allow, expose: 'meta' } },
      }),
    )
    await toolway.gateway.refresh()
    const { origin } = new URL(toolway.url)
    shared = shareVisit(() => visit(browser, origin, toolway.token, { at: '/calls' }))
  })
  afterAll(() => open.disposeAsync())

  const opened = (page: Page) => page.getByRole('complementary', { name: 'Call' })
  const steps = (page: Page) => opened(page).locator('.timeline li').allTextContents()
  const inner = (page: Page) => opened(page).locator('.call-tree li').allTextContents()
  const openFirst = async (page: Page, name: string, count = 1) => {
    // The list does not move while the pointer or the focus is in it.
    await page.mouse.move(5, 5)
    await page.evaluate('document.activeElement.blur()')
    await expect.poll(() => rows(page, 'Calls', name, 'answered').count()).toBe(count)
    await rows(page, 'Calls', name).first().getByRole('link').first().click()
    await opened(page).getByRole('heading', { name: 'Timeline' }).waitFor()
  }

  test('retries, the cache and approvals are in the timeline; inner calls of code and batches form a tree', async () => {
    await using client = await connect('v1', { endpoint: toolway })
    const visitor = await shared.at()
    const { page } = visitor

    expect(JSON.stringify(await client.callTool('flaky__look', { key: 'a' }))).toContain('found a')
    await go(page, 'Calls')
    await openFirst(page, 'flaky.look')
    expect(await steps(page)).toEqual([
      expect.stringMatching(/^policy and audit/),
      ...(await steps(page)).slice(1, -3),
      expect.stringMatching(/^attempt 1 [A-Z_]+/),
      expect.stringMatching(/^pause before the retry/),
      expect.stringMatching(/^attempt 2after/),
    ])
    expect((await steps(page)).join()).toMatch(/cache lookup/)
    await expectWhole(visitor)

    // The same call again is answered by the cache: nothing is sent.
    await client.callTool('flaky__look', { key: 'a' })
    await visitor.follow('/calls')
    await openFirst(page, 'flaky.look', 2)
    await opened(page).getByText('served from the cache').waitFor()
    expect((await steps(page)).join()).not.toMatch(/attempt/)

    const asked = client.callTool('flaky__ask', { key: 'b' })
    await visitor.follow('/approvals')
    await page.getByRole('button', { name: 'Allow once' }).click()
    await asked
    await visitor.follow('/calls')
    await openFirst(page, 'flaky.ask')
    expect((await steps(page)).join()).toMatch(/waiting for approval.*attempt 1.*attempt 2/s)

    const coder = await converse(toolway, 'coder')
    const { value } = await coder.call<{ value: unknown }>('execute_code', {
      code: `const [a, b] = [await tools.arithmetic.add({ a: 1, b: 2 }), await tools.arithmetic.multiply({ a: 2, b: 4 })]
;[a.result, b.result]`,
    })
    expect(value).toEqual([3, 8])
    await visitor.follow('/calls')
    await openFirst(page, 'execute_code')
    expect(await inner(page)).toEqual([
      expect.stringMatching(/^answered.*arithmetic\.add/),
      expect.stringMatching(/^answered.*arithmetic\.multiply/),
    ])
    await expectWhole(visitor)
    await opened(page).getByRole('link', { name: 'arithmetic.multiply' }).click()
    await opened(page).getByText('Caused by').waitFor()
    expect((await steps(page)).join()).toMatch(/attempt/)

    const planner = await converse(toolway, 'planner')
    const city = (name: string) => ({ server: 'weather', tool: 'temperature', args: { city: name } })
    await planner.call('execute_tools', { calls: [city('Rome'), city('Oslo')] })
    await visitor.follow('/calls')
    await openFirst(page, 'execute_tools')
    expect(await inner(page)).toEqual(Array.from({ length: 2 }, () => expect.stringMatching(/answered.*weather/)))
    expect(visitor.troubles).toEqual([])
  })

  test('a file is picked for a binary argument, and its bytes reach the server', async () => {
    const visitor = await shared.at('/tools/flaky__look?view=try')
    const { page } = visitor
    await page.getByLabel('key', { exact: true }).fill('picked')
    const buffer = Buffer.from([0, 255, 128, 10])
    await page.getByLabel('File', { exact: true }).setInputFiles({ name: 'a.bin', mimeType: 'image/png', buffer })
    await expect.poll(() => page.getByPlaceholder('base64').inputValue()).toBe('AP+ACg==')
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await page.getByTestId('outcome').getByText('found picked 00ff800a').first().waitFor()
    await expectWhole(visitor)
  })

  test('filters combine, are in the address, and are restored from it', async () => {
    await using client = await connect('v1', { endpoint: toolway })
    await client.callTool('flaky__look', { key: 'c' })
    await client.callTool('weather__temperature', { city: 'Nowhere' })
    await client.callTool('weather__temperature', { city: 'Cairo' })
    const visitor = await shared.at('/calls')
    const { page } = visitor
    await page.getByLabel('Server').selectOption('weather')
    await page.getByLabel('Outcome').selectOption('tool_error')
    await page.getByLabel('Agent').selectOption('default')
    await expect.poll(() => rows(page, 'Calls').count()).toBe(1)
    const { searchParams } = new URL(page.url())
    expect(Object.fromEntries(searchParams)).toEqual({ server: 'weather', outcome: 'tool_error', agent: 'default' })
    await page.reload()
    await row(page, 'Calls', 'weather.temperature', 'tool error')
    await expect.poll(() => rows(page, 'Calls').count()).toBe(1)
    // A call opened from the filtered list keeps the filters.
    await rows(page, 'Calls').getByRole('link').first().click()
    await opened(page).getByRole('link', { name: 'Close call' }).click()
    expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual(Object.fromEntries(searchParams))
    await page.getByLabel('Outcome').selectOption('')
    await row(page, 'Calls', 'weather.temperature', 'answered')
    await expect.poll(() => rows(page, 'Calls', 'flaky').count()).toBe(0)
    await page.getByRole('searchbox', { name: 'Search calls' }).fill('nothing like this')
    await page.getByText('No matching calls').waitFor()
    expect(visitor.troubles).toEqual([])
  })
})
