import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AppsHost, serveAppsHost } from '../../fixtures/apps-host/serve.ts'
import { type Folder, temporaryFolder } from '../../fixtures/folders.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { type Browser, openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'

/*
 * A host of MCP Apps in a browser shows the pages of published servers. It connects to Toolway from there with the
 * official client, and its pages reach their servers through the official bridge.
 */

const open = new AsyncDisposableStack()
let folder: Folder
let host: AppsHost
let toolway: LocalToolway
let browser: Browser

const modes = ['both', 'meta', 'code', 'auto'] as const
const eras = ['session', 'stateless'] as const
const logFile = (server: string) => join(folder.path, `${server}.log`)

/** Of two equal servers, whose videos have different sizes. */
const videoBytes = { films: 300, clips: 600 }

async function start(): Promise<void> {
  folder = open.use(await temporaryFolder())
  host = open.use(await serveAppsHost())
  toolway = open.use(
    await startToolway({
      mcpServers: {
        customers: stdioServers.app('customer-segmentation'),
        cohorts: stdioServers.app('cohort-heatmap'),
        monitor: stdioServers.app('system-monitor'),
        debug: stdioServers.debugApp(logFile('debug')),
        twin: stdioServers.debugApp(logFile('twin')),
        films: stdioServers.videoApp(videoBytes.films),
        clips: stdioServers.videoApp(videoBytes.clips),
        lots: stdioServers.manyTools('lots', 400, 200),
      },
      server: { port: 0, allowedOrigins: [host.origin] },
      sandbox: { minIsolation: 'worker' },
    }),
  )
  await toolway.gateway.refresh()
  browser = open.adopt(await openBrowser(), (one) => one.close())
}

interface Visitor {
  readonly page: Page
  /** What the pages and the browser print, which includes failed requests. */
  readonly messages: readonly string[]
  readonly toolNames: readonly string[]
  show(tool: string, args?: object): Promise<void>
}

const inPage = <T>(page: Page, call: string, ...args: unknown[]): Promise<T> =>
  page.evaluate(`host.${call}(${args.map((arg) => JSON.stringify(arg)).join()})`)

/** Opens the host in a new page, connected as one agent. */
async function visitHost(mode: string, era: string): Promise<Visitor> {
  const context = await browser.newContext()
  const page = await context.newPage()
  const messages: string[] = []
  page.on('console', (message) => messages.push(`${message.type()}: ${message.text()}`))
  page.on('pageerror', ({ message }) => messages.push(`error: ${message}`))
  page.setDefaultTimeout(60_000)
  await page.goto(host.origin)
  const headers = { authorization: `Bearer ${toolway.token}`, 'toolway-expose': mode }
  await inPage(page, 'connect', toolway.url, headers, era)
  const toolNames = await inPage<string[]>(page, 'toolNames')
  return { page, messages, toolNames, show: (tool, args = {}) => inPage(page, 'show', tool, args) }
}

inBrowser('W3: pages of published apps', () => {
  beforeAll(start)
  afterAll(() => open.disposeAsync())

  // Each mode in one era: what depends on the era is in the story of the protocol.
  const cases = modes.map((mode, index) => ({ mode, era: eras[index % 2] as (typeof eras)[number] }))

  test.each(cases)('W3: pages call tools by bare names and show the results, expose: $mode, $era', async (one) => {
    const { page, messages, toolNames, show } = await visitHost(one.mode, one.era)
    expect(toolNames.includes('lots__tool_399')).toBe(one.mode === 'both')
    expect(toolNames.includes('find_tool')).toBe(one.mode !== 'code')
    const app = page.frameLocator('iframe')

    // This page calls its tool itself when it is shown, and ignores the result of the first call.
    await show('customers__get-customer-data')
    await app.locator('#legend', { hasText: /Enterprise\s*\(\d+\)/ }).waitFor()
    expect(await app.locator('body').evaluate('origin')).toBe('null')

    await show('cohorts__get-cohort-data')
    const table = app.locator('#root', { hasText: 'M11' })
    const before = await table.textContent()
    await app.locator('select').first().selectOption({ label: 'Revenue Retention' })
    await expect.poll(() => table.textContent()).not.toBe(before)

    // Only pages may call this one: it is listed in no other mode.
    expect(toolNames.includes('monitor__poll-system-stats')).toBe(one.mode === 'both')
    await show('monitor__get-system-info')
    await app
      .locator('#memory-percent')
      .getByText(/^\d+%$/)
      .waitFor()
    await app.getByRole('button', { name: 'Stop' }).click()
    await app.getByRole('button', { name: 'Start' }).waitFor()

    expect(messages.filter((message) => message.startsWith('error'))).toEqual([])
  })

  test.each(cases)('W3: pages of equal servers reach their own one, expose: $mode, $era', async ({ mode, era }) => {
    const { page, messages, show } = await visitHost(mode, era)
    const app = page.frameLocator('iframe')

    for (const server of ['debug', 'twin']) {
      const logged = async () => (await readFile(logFile(server), 'utf8').catch(() => '')).split('\n').length
      const before = await logged()
      await show(`${server}__debug-tool`, { contentType: 'text' })
      await app.getByRole('button', { name: 'Call debug-refresh' }).click()
      await app.locator('#event-log', { hasText: 'server-tool-result' }).waitFor()
      await expect.poll(logged).toBeGreaterThan(before)
    }

    // Their pages also read their servers' resources by the URIs that the servers gave them.
    for (const [server, bytes] of Object.entries(videoBytes)) {
      await show(`${server}__play_video`, { videoId: 'bunny-1mb' })
      await app.getByText('Loaded via MCP resource').waitFor()
      expect(messages.findLast((message) => message.includes('blob size'))).toContain(`blob size: ${(bytes * 4) / 3}`)
    }
    expect(messages.filter((message) => message.startsWith('error'))).toEqual([])
  })
})
