import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect } from '../../fixtures/clients.ts'
import { type Command, startCommand } from '../../fixtures/command.ts'
import { type Folder, temporaryFolder } from '../../fixtures/folders.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { visit } from '../visit.ts'
import { go, row, rows, title } from './pages.ts'

inBrowser('V12: a gateway that is killed and started again', () => {
  const config = { mcpServers: { probe: stdioServers.probe() } }
  let folder: Folder
  let toolway: Command
  beforeAll(async () => {
    folder = await temporaryFolder()
    toolway = await startCommand(config, { folder })
  })
  afterAll(async () => {
    await toolway[Symbol.asyncDispose]()
    await folder[Symbol.asyncDispose]()
  })

  test('V12: shows the same charts, statistics and calls to the same signed-in browser', async () => {
    await using open = new AsyncDisposableStack()
    const browser = open.adopt(await openBrowser(), (one) => one.close())
    const { origin, port } = new URL(toolway.url)
    const visitor = open.use(await visit(browser, origin, toolway.token))
    const { page } = visitor
    await title(page, 'Overview')
    const counted = (calls: number) =>
      rows(page, 'Statistics by tool', 'probe.echo')
        .getByRole('cell', { name: `${calls}`, exact: true })
        .waitFor()
    {
      await using client = await connect('v2', { endpoint: toolway })
      for (let n = 0; n < 7; n++) await client.callTool('probe__echo', { message: `${n}` })
    }
    await go(page, 'Calls')
    await row(page, 'Calls', 'probe.echo', 'answered')
    await rows(page, 'Calls', 'probe.echo').first().getByRole('link').click()
    const timeline = page.getByText('attempt').first()
    await timeline.waitFor()
    const address = page.url()
    // What happened is stored within two seconds; asking for statistics stores it at once.
    await page.goto('/?by=tool')
    await counted(7)
    const agentCalls = page.getByRole('table', { name: 'Agents' }).getByRole('row', { name: /^default/ })
    await page.goto('/policy?range=1h')
    await agentCalls.getByRole('cell', { name: '7', exact: true }).waitFor()

    await toolway.stop('SIGKILL')
    toolway = await startCommand(config, { folder, words: ['--port', port] })
    await page.goto('/?by=tool&range=5m')
    await counted(7)
    await page.getByText('Calls in the last 5 minutes').waitFor()
    const chart = page.getByRole('img', { name: /^Latency\. p50: [\d.]/ })
    await chart.waitFor()
    await page.goto('/policy?range=1h')
    await agentCalls.getByRole('cell', { name: '7', exact: true }).waitFor()
    await page.getByText('Calls, latencies, errors and denials in the last hour').waitFor()
    await page.goto(address)
    await timeline.waitFor()
    await row(page, 'Calls', 'probe.echo', 'answered')
    await expect.poll(() => rows(page, 'Calls', 'probe.echo').count()).toBe(7)
    expect(visitor.troubles).toEqual([])

    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Token or API key').waitFor()
    await toolway.stop('SIGKILL')
    toolway = await startCommand(config, { folder, words: ['--port', port] })
    await page.goto('/')
    await page.getByLabel('Token or API key').waitFor()
  })
})
