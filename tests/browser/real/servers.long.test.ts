import { randomUUID } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openGateway } from '../../../src/admin/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { asking, keyFor, originOf } from '../../e2e/admin/people.ts'
import { connect } from '../../fixtures/clients.ts'
import { writeConfig } from '../../fixtures/config-file.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { createKeptLog } from '../../fixtures/log.ts'
import { commandLine, descendants } from '../../fixtures/processes.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import type { Endpoint } from '../../fixtures/toolway.ts'
import { type Browser, openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { emptyPage, type Visit, visit } from '../visit.ts'
import { expectFits, expectWhole, go, jump, press, row, rows, tabTo, title } from './pages.ts'

inBrowser('V9: servers of an operator, from the first test to the calls of others', () => {
  const open = new AsyncDisposableStack()
  const reader = keyFor('reader', ['reader'])
  let toolway: Endpoint
  let configFile: string
  let browser: Browser
  let visitor: Visit
  /** Of tests that ran before in this process. */
  const others = new Set(descendants(process.pid))
  beforeAll(async () => {
    const { path: home } = open.use(await temporaryFolder())
    await mkdir(join(home, '.cursor'))
    const probe = { ...stdioServers.probe(), env: { API_TOKEN: 'a-token-of-the-editor' } }
    await writeFile(join(home, '.cursor', 'mcp.json'), JSON.stringify({ mcpServers: { probe } }))
    const config = {
      mcpServers: { unused: stdioServers.manyTools('unused', 3) },
      defaults: { agent: 'default' },
      agents: { default: { allow: { servers: ['*'] } }, reader: { allow: { servers: ['probe'] } } },
      auth: { keys: [reader.configured] },
    }
    configFile = await writeConfig(home, config, randomUUID())
    const env = { ...process.env, HOME: home, XDG_CONFIG_HOME: join(home, 'config') }
    const source = { paths: [configFile], env, cwd: home }
    const load = () => loadConfig(source)
    const gateway = open.use(await openGateway(await load(), { log: createKeptLog(), load, source, watch: true }))
    toolway = { url: (await gateway.listen()).url, token: gateway.token ?? '' }
    browser = open.adopt(await openBrowser(), (one) => one.close())
    visitor = open.use(await visit(browser, originOf(toolway), toolway.token, { at: emptyPage }))
  })
  afterAll(() => open.disposeAsync())

  const file = () => readFile(configFile, 'utf8')
  /** The servers that are alive, also those that are only tested. */
  const children = () =>
    descendants(process.pid).filter((pid) => !others.has(pid) && commandLine(pid).startsWith(process.execPath))
  const call = async (tool: string, args: Record<string, unknown>) => {
    await using client = await connect('v2', { endpoint: toolway })
    return JSON.stringify(await client.callTool(tool, args))
  }

  test('G10: the tools of a server that was not used yet are unknown, until they are refreshed', async () => {
    const { page } = visitor
    await visitor.follow('/servers/unused')
    await title(page, 'unused')
    await page.getByText('Its tools are not known yet.').waitFor()
    expect(children()).toEqual([])
    await expectFits(visitor)
    await press(page, page.getByRole('button', { name: 'Refresh tools' }))
    await page.getByText(/^3 tools, [1-9]\d* tokens of context\.$/).waitFor()
    await expect.poll(() => rows(page, 'Tools').count()).toBe(3)
    expect(children()).toHaveLength(1)
  })

  test('V9: a server is tested before it is saved: tools, prompts, resources, templates, tokens and findings', async () => {
    const { page } = visitor
    const dialog = page.getByRole('dialog')
    const [before, running] = [await file(), children()]
    await go(page, 'Servers')
    await press(page, page.getByRole('button', { name: 'Add server' }))
    await tabTo(page, dialog.getByRole('textbox', { name: /Command, URL/ }))
    await page.keyboard.insertText(JSON.stringify({ mcpServers: { library: stdioServers.library() } }))
    await press(page, dialog.getByRole('button', { name: 'Test' }))
    const tested = dialog.getByRole('region', { name: 'Test of library' })
    await tested.getByText(/^2 tools \([1-9]\d* tokens\), 1 prompt, 2 resources$/).waitFor()
    for (const summary of ['Tools', 'Prompts and resources']) {
      await press(page, tested.locator('summary').getByText(summary, { exact: true }))
    }
    const items = tested.getByRole('listitem')
    await items.filter({ hasText: /^lend [1-9]\d* tokens$/ }).waitFor()
    await items.filter({ hasText: /^note [1-9]\d* tokens$/ }).waitFor()
    expect(await items.locator('code').allTextContents()).toEqual([
      ...['note', 'lend', 'recommend', 'library://catalogue', 'library://books/{id}'],
    ])
    await tested.getByText(/^lend: secrecy in description: .*do not tell the user/).waitFor()
    expect(await tested.getByText(/^note: /).count()).toBe(0)
    await expectWhole(visitor)
    expect(await file()).toBe(before)
    await expect.poll(children).toEqual(running)

    await press(page, dialog.getByRole('button', { name: 'Review' }))
    await dialog.locator('.added', { hasText: '"library"' }).waitFor()
    await press(page, dialog.getByRole('button', { name: 'Save' }))
    await dialog.waitFor({ state: 'detached' })
    await press(page, page.getByRole('link', { name: 'library', exact: true }))
    await title(page, 'library')
    // With the URIs that clients use.
    await row(page, 'Resources and prompts', 'library://library/catalogue', 'All books.', 'resource')
    await row(page, 'Resources and prompts', 'library://library/books/{id}', 'resource template')
    await row(page, 'Resources and prompts', 'recommend', 'prompt')
    await expect.poll(() => rows(page, 'Resources and prompts').count()).toBe(3)
    await row(page, 'Tools', 'lend')
    await expectFits(visitor)
  })

  test('V9: stderr is followed: a new line appears at the top with its time, without a reload', async () => {
    const { page } = visitor
    await visitor.follow('/servers/library')
    await page.evaluate('window.loaded = "once"')
    const lines = page.getByRole('region', { name: /^Lines of stderr/ }).getByRole('listitem')
    const first = async (text: string) => {
      await expect.poll(() => lines.locator('code').first().textContent()).toBe(text)
      return Date.parse((await lines.locator('time').first().getAttribute('datetime')) ?? '')
    }
    const follow = page.getByRole('button', { name: 'Follow' })
    const start = Date.now()
    await call('library__note', { text: 'the first line' })
    const firstAt = await first('the first line')
    await call('library__note', { text: 'the second line' })
    const secondAt = await first('the second line')
    expect(firstAt).toBeGreaterThanOrEqual(start)
    expect(secondAt).toBeGreaterThanOrEqual(firstAt)
    expect(secondAt).toBeLessThanOrEqual(Date.now())
    expect(await lines.locator('code').allTextContents()).toEqual(['the second line', 'the first line'])

    await press(page, follow)
    await call('library__note', { text: 'the third line' })
    await page.getByText('1 new', { exact: true }).waitFor()
    await first('the second line')
    await expectFits(visitor)
    await press(page, follow)
    await first('the third line')
    expect(await follow.getAttribute('aria-pressed')).toBe('true')
    expect(await page.evaluate('window.loaded')).toBe('once')
  })

  test('V9: a server of an editor on this machine is picked, shown as a difference, saved, and runs', async () => {
    const { page } = visitor
    const dialog = page.getByRole('dialog')
    await go(page, 'Servers')
    await press(page, page.getByRole('button', { name: 'Add server' }))
    await press(page, dialog.locator('summary', { hasText: 'Servers from editors on this machine (1)' }))
    await dialog.getByRole('listitem').filter({ hasText: 'probe' }).getByText('Cursor').waitFor()
    await expectWhole(visitor)
    await press(page, dialog.getByRole('button', { name: 'Import probe' }))
    await dialog.getByRole('group', { name: /^Changes to/ }).waitFor()
    await dialog.locator('.added', { hasText: '"probe"' }).waitFor()
    expect(await page.content()).not.toContain('a-token-of-the-editor')
    await expectWhole(visitor)
    await press(page, dialog.getByRole('button', { name: 'Save' }))
    await dialog.waitFor({ state: 'detached' })
    await row(page, 'Servers', 'probe')
    expect(await file()).not.toContain('a-token-of-the-editor')
    expect(await call('probe__echo', { message: 'imported' })).toContain('Echo: imported')
    await row(page, 'Servers', 'probe', 'healthy')

    // What is configured is not offered again.
    const found = page.waitForResponse('**/config/servers/found')
    await press(page, page.getByRole('button', { name: 'Add server' }))
    expect(await (await found).json()).toMatchObject([{ client: 'Cursor', name: 'probe', present: true }])
    expect(await dialog.getByText('Servers from editors').count()).toBe(0)
    await page.keyboard.press('Escape')
    await expectFits(visitor)
  })

  test('G10: Ctrl+K jumps to a server, a tool, an agent and a call', async () => {
    const { page } = visitor
    await call('probe__echo', { message: 'to be found' })
    const { json } = await asking(originOf(toolway), toolway.token)('calls?server=probe&limit=1')
    const [{ id, name }] = json.calls as [{ id: string; name: string }]
    expect(name).toBe('echo')
    await jump(page, 'libr', /^library\b.*server$/)
    await title(page, 'library')
    await jump(page, 'ech', /^probe__echo\b.*tool$/)
    await title(page, 'probe__echo')
    await jump(page, 'read', /^reader\b.*agent$/)
    await title(page, 'Calls')
    expect(new URL(page.url()).search).toBe('?agent=reader')
    await jump(page, id, /call$/)
    const panel = page.getByRole('complementary', { name: 'Call' })
    await panel.getByText('Timeline').waitFor()
    expect(new URL(page.url()).pathname).toBe(`/calls/${id}`)
    await panel.getByText('probe.echo').first().waitFor()
    await expectWhole(visitor)
  })

  test('G10: users without admin rights do not see the pages that refuse them, and those pages say so', async () => {
    await using guest = await visit(browser, originOf(toolway), reader.key)
    const { page } = guest
    const menu = page.getByRole('navigation', { name: 'Pages' }).getByRole('link')
    await title(page, 'Overview')
    expect(await menu.allTextContents()).toEqual([
      ...['Overview', 'Servers', 'Tools', 'Chat', 'Calls', 'Approvals', 'Policy'],
    ])
    await page.keyboard.press('Control+k')
    const options = page.getByRole('option')
    await options.filter({ hasText: 'Servers' }).waitFor()
    expect(await options.filter({ hasText: /^(Definitions|Keys|Audit|Configuration)/ }).count()).toBe(0)
    await page.keyboard.press('Escape')

    const ask = asking(originOf(toolway), reader.key)
    for (const [path, api, what] of [
      ['/pins', 'pins', 'the definitions'],
      ['/skills', 'skills', 'the skills'],
      ['/keys', 'keys', 'API keys'],
      ['/pins/probe.echo', 'pins/probe.echo', 'the definitions'],
      ['/audit', 'audit', 'the audit log'],
      ['/config', 'config', 'the configuration'],
    ] as const) {
      await guest.follow(path)
      await page.getByRole('heading', { name: `Only admins can see ${what}` }).waitFor()
      expect(await page.getByRole('table').count(), path).toBe(0)
      const { status, json } = await ask(api)
      expect([path, status, json.error.code]).toEqual([path, 403, 'DENIED_BY_POLICY'])
    }
    await expectWhole(guest)
    await go(page, 'Servers')
    await row(page, 'Servers', 'probe')
    expect(await rows(page, 'Servers', 'library').count()).toBe(0)
    expect(await page.getByRole('button', { name: 'Add server' }).count()).toBe(0)
    await guest.follow('/servers/library')
    await page.getByRole('alert').getByText('Could not load').waitFor()
    expect((await ask('servers/library')).status).toBe(404)
    await expectFits(guest)
  })
})
