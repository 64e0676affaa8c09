import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openGateway } from '../../../src/admin/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import type { Gateway } from '../../../src/runtime/gateway-api.ts'
import { connect } from '../../fixtures/clients.ts'
import { type FakeRegistry, startRegistry } from '../../fixtures/fake-registry.ts'
import { type Folder, temporaryFolder } from '../../fixtures/folders.ts'
import { createKeptLog } from '../../fixtures/log.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { visit } from '../visit.ts'
import { expectFits, expectWhole, go, row, rows, title } from './pages.ts'

const first = (folder: string, registry: string) => `# My gateway; do not lose this comment.
version: 1

stores: { path: ${JSON.stringify(join(folder, 'state'))} }
server: { port: 0 }     # any
registry: { url: ${JSON.stringify(registry)} }

mcpServers:
  # the first one
  first: ${JSON.stringify(stdioServers.manyTools('first', 2))}
`

inBrowser('V9: an operator manages servers in the browser', () => {
  const open = new AsyncDisposableStack()
  let folder: Folder
  let registry: FakeRegistry
  let browser: Awaited<ReturnType<typeof openBrowser>>
  let gateway: Gateway
  let file: string
  let url: string
  beforeAll(async () => {
    folder = open.use(await temporaryFolder())
    file = join(folder.path, 'toolway.yaml')
    const remotes = [{ type: 'streamable-http', url: 'https://{tenant}.example.com/mcp' }]
    const packages = [{ registryType: 'npm', identifier: '@example/weather', version: '1.2.0' }]
    registry = open.use(await startRegistry([{ name: 'io.example/weather', version: '1.2.0', remotes, packages }]))
    await writeFile(file, first(folder.path, registry.url))
    const env = { ...process.env, XDG_CONFIG_HOME: join(folder.path, 'config'), HOME: folder.path }
    const source = { paths: [file], env, cwd: folder.path }
    const load = () => loadConfig(source)
    gateway = open.use(await openGateway(await load(), { log: createKeptLog(), load, source, watch: true }))
    url = (await gateway.listen()).url
    browser = open.adopt(await openBrowser(), (one) => one.close())
  })
  afterAll(() => open.disposeAsync())

  const text = () => readFile(file, 'utf8')

  test('adds a pasted server, tests it, saves it and calls it; edits, removes and undoes', async () => {
    const before = await text()
    await using visitor = await visit(browser, new URL(url).origin, gateway.token ?? '', { at: '/servers' })
    const { page } = visitor
    const dialog = page.getByRole('dialog')
    const save = async (check = expectFits) => {
      await dialog.getByRole('group', { name: /^Changes to/ }).waitFor()
      await check(visitor)
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.waitFor({ state: 'detached' })
      expect(gateway.reloadStatus().history.filter(({ error }) => error !== undefined)).toEqual([])
    }

    await page.getByRole('button', { name: 'Add server' }).click()
    const entry = { ...stdioServers.manyTools('second', 3), env: { API_TOKEN: 'only-once-secret' } }
    const pasted = JSON.stringify({ mcpServers: { second: entry } })
    await dialog.getByRole('textbox', { name: /Command, URL/ }).fill(pasted)
    await dialog.getByRole('button', { name: 'Test' }).click()
    await dialog.getByText('3 tools').waitFor()
    await expectWhole(visitor)
    // A result is about what was tested, so it disappears when the definition changes.
    await dialog.getByRole('textbox', { name: /Command, URL/ }).fill(pasted.replace('second', 'other'))
    await dialog.getByText('3 tools').waitFor({ state: 'detached' })
    await dialog.getByRole('textbox', { name: /Command, URL/ }).fill(pasted)
    await dialog.getByText('3 tools').waitFor()
    await dialog.getByRole('button', { name: 'Review' }).click()
    await dialog.getByText('Everybody may use second').waitFor()
    await save(expectWhole)
    await row(page, 'Servers', 'second')
    const added = await text()
    expect(added.startsWith(before)).toBe(true)
    expect(added).not.toContain('only-once-secret')
    expect(await page.content()).not.toContain('only-once-secret')
    await using client = await connect('v2', { endpoint: { url, token: gateway.token ?? '' } })
    expect(JSON.stringify(await client.callTool('second__tool_1', {}))).toContain('content')

    await page.getByRole('link', { name: 'second', exact: true }).click()
    await title(page, 'second')
    await page.getByRole('button', { name: 'Edit', exact: true }).click()
    await dialog.getByRole('textbox', { name: 'description' }).fill('Edited in the browser')
    await dialog.getByRole('textbox', { name: 'timeout', exact: true }).fill('20s')
    await expectWhole(visitor)
    await dialog.getByRole('button', { name: 'Test' }).click()
    await dialog.getByText('3 tools').waitFor()
    await dialog.getByRole('button', { name: 'Review' }).click()
    await save()
    expect(await text()).toMatch(/timeout: 20s/)
    await page.getByText('Edited in the browser').first().waitFor()
    await expectWhole(visitor)

    await page.getByRole('button', { name: 'Edit', exact: true }).click()
    await dialog.getByRole('tab', { name: 'YAML' }).click()
    const yaml = dialog.getByRole('textbox', { name: 'second as YAML' })
    await yaml.fill(`${await yaml.inputValue()}concurrency: 4\n`)
    await dialog.getByRole('button', { name: 'Review' }).click()
    await save()
    expect(await text()).toMatch(/concurrency: 4/)

    await page.getByRole('button', { name: 'Duplicate', exact: true }).click()
    const copy = dialog.getByRole('textbox', { name: 'Name of the server' })
    await copy.fill('first')
    await dialog.getByRole('button', { name: 'Review' }).click()
    await dialog.getByText('mcpServers.first already exists').waitFor()
    await dialog.getByRole('button', { name: 'Back' }).click()
    await copy.fill('third')
    await dialog.getByRole('button', { name: 'Review' }).click()
    // The copy gets the secret, too.
    await dialog.getByRole('checkbox', { name: /\$\{file:.* for mcpServers\.third/ }).check()
    await save()
    expect(JSON.stringify(await client.callTool('third__tool_1', {}))).toContain('content')

    await page.getByRole('button', { name: 'Disable', exact: true }).click()
    await save()
    await page.getByRole('button', { name: 'Enable', exact: true }).waitFor()

    await page.getByRole('button', { name: 'Remove', exact: true }).click()
    await save()
    await title(page, 'Servers')
    await expect.poll(() => rows(page, 'Servers', 'second').allInnerTexts()).toEqual([])
    expect(await text()).toContain('# My gateway; do not lose this comment.')

    await go(page, 'Configuration')
    const undo = page.locator('li', { hasNotText: 'Undid' }).getByRole('button', { name: /^Undo/ })
    await undo.first().waitFor()
    for (let left = await undo.count(); left > 0; left--) {
      await undo.first().click()
      await save()
      await expect.poll(() => undo.count()).toBe(left - 1)
    }
    await expectWhole(visitor)
    expect(await text()).toBe(before)
    expect(visitor.troubles).toEqual([])
  })

  test('V9: a new server is allowed for an agent in the same edit, and a copy of one only if somebody wants it', async () => {
    const before = await text()
    await writeFile(file, `${before}agents: { ci: { allow: { servers: [other] } } }\n`)
    await expect.poll(() => Object.keys(gateway.loaded.config.agents)).toEqual(['ci'])
    await using visitor = await visit(browser, new URL(url).origin, gateway.token ?? '', { at: '/servers' })
    const { page } = visitor
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Add server' }).click()
    const pasted = { copy: stdioServers.manyTools('first', 2), fresh: stdioServers.manyTools('fresh', 1) }
    await dialog.getByRole('textbox', { name: /Command, URL/ }).fill(JSON.stringify({ mcpServers: pasted }))
    await dialog.getByRole('button', { name: 'Review' }).click()
    await dialog.getByText('copy is not added: the configuration has the same server as first.').waitFor()
    await dialog.getByText('No agent may use fresh.').waitFor()
    await expectFits(visitor)
    await dialog.getByRole('button', { name: 'Add copy, too' }).click()
    await dialog.getByText('No agent may use copy.').waitFor()
    await dialog.getByRole('checkbox', { name: 'ci' }).check()
    await dialog.getByText('ci may use copy.').waitFor()
    await dialog.getByText('ci may use fresh.').waitFor()
    await dialog.getByRole('button', { name: 'Save', disabled: false }).click()
    await dialog.waitFor({ state: 'detached' })
    const { agents, mcpServers } = (await loadConfig({ paths: [file], env: { HOME: folder.path }, cwd: folder.path }))
      .config
    expect(agents.ci?.allow.servers.toSorted()).toEqual(['copy', 'fresh', 'other'])
    expect(Object.keys(mcpServers)).toEqual(['first', 'copy', 'fresh'])
    await writeFile(file, before)
    await expect.poll(() => gateway.servers().map(({ name }) => name)).not.toContain('fresh')
    expect(visitor.troubles).toEqual([])
  })

  test('V9: an open form does not revert what others have changed since, nor bring back what they removed', async () => {
    const before = await text()
    await using visitor = await visit(browser, new URL(url).origin, gateway.token ?? '', { at: '/servers/first' })
    const { page } = visitor
    const dialog = page.getByRole('dialog')
    const loadCurrent = dialog.getByRole('button', { name: 'Discard my changes and load the current values' })
    const description = dialog.getByRole('textbox', { name: 'description' })
    const review = dialog.getByRole('button', { name: 'Review' })
    const save = dialog.getByRole('button', { name: 'Save' })
    await page.getByRole('button', { name: 'Edit', exact: true }).click()
    await description.fill('mine')
    await review.click()
    await save.waitFor()
    const theirs = before.replace('first: {', 'first: {"timeout":"20s",')
    await writeFile(file, theirs)
    await save.click()
    await dialog.getByText('mcpServers.first has been changed since you started to edit it').waitFor()
    expect(await save.count()).toBe(0)
    await dialog.getByRole('button', { name: 'Back' }).click()
    expect(await description.inputValue()).toBe('mine')
    await review.click()
    await loadCurrent.click()
    await description.waitFor()
    expect(await dialog.getByRole('textbox', { name: 'timeout', exact: true }).inputValue()).toBe('20s')
    await description.fill('mine')
    await review.click()
    await save.click()
    await dialog.waitFor({ state: 'detached' })
    expect(await text()).toMatch(/timeout.*20s.*description.*mine/)

    await page.getByRole('button', { name: 'Edit', exact: true }).click()
    await description.fill('again')
    await writeFile(file, before.replace('first: {', 'other: {'))
    await review.click()
    await dialog.getByText('mcpServers.first has been removed since you started to edit it').waitFor()
    expect(await save.count()).toBe(0)

    await writeFile(file, before)
    page.once('dialog', (question) => void question.accept())
    await page.keyboard.press('Escape')
    expect(visitor.troubles).toEqual([])
  })

  test('V9: a server that is disabled in the spelling of another client is edited and enabled; no changes are not saved', async () => {
    const before = await text()
    const other = { ...stdioServers.manyTools('other', 2), enabled: false, includeTools: ['tool_1'] }
    await writeFile(file, `${before}  other: ${JSON.stringify(other)}\n`)
    await using visitor = await visit(browser, new URL(url).origin, gateway.token ?? '', { at: '/servers' })
    const { page } = visitor
    await page.getByRole('link', { name: 'other', exact: true }).click()
    const dialog = page.getByRole('dialog')
    const save = async () => {
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.waitFor({ state: 'detached' })
    }
    await page.getByRole('button', { name: 'Edit', exact: true }).click()
    await dialog.getByRole('button', { name: 'Review' }).click()
    await dialog.getByText('No changes.').waitFor()
    expect(await dialog.getByRole('button', { name: 'Save', disabled: false }).count()).toBe(0)
    await dialog.getByRole('button', { name: 'Back' }).click()
    await dialog.getByText('More settings').click()
    await dialog.getByRole('textbox', { name: 'enabled' }).waitFor()
    expect(await dialog.getByText('not a known property').count()).toBe(0)
    expect(await dialog.getByRole('textbox', { name: 'httpUrl' }).count()).toBe(0)
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Enable', exact: true }).click()
    await save()
    await page.getByRole('button', { name: 'Disable', exact: true }).waitFor()
    expect(await text()).not.toContain('enabled')
    await writeFile(file, before)
    expect(visitor.troubles).toEqual([])
  })

  test('G10: names and descriptions without spaces are wrapped on small screens', async () => {
    const before = await text()
    const server = { ...stdioServers.manyTools('long', 1), description: 'W'.repeat(500) }
    const name = 'S'.repeat(64)
    const agent = 'A'.repeat(128)
    const agents = `agents: { ${agent}: { allow: { servers: [first] } } }\n`
    await writeFile(file, `${before}  ${name}: ${JSON.stringify(server)}\n${agents}`)
    await using visitor = await visit(browser, new URL(url).origin, gateway.token ?? '', {
      at: '/servers',
      viewport: { width: 320, height: 480 },
    })
    const { page } = visitor
    await page.getByRole('link', { name }).first().click()
    await title(page, name)
    await page.getByText('W'.repeat(500)).first().waitFor()
    await expectFits(visitor)
    await visitor.follow(`/policy?view=edit&part=agents.${agent}`)
    await page.getByRole('heading', { name: `Agent ${agent}` }).waitFor()
    await expectFits(visitor)
    await visitor.follow('/keys')
    await page.getByRole('button', { name: 'Create a key' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('checkbox', { name: agent }).waitFor()
    expect(await dialog.evaluate((element) => element.scrollWidth - element.clientWidth)).toBe(0)
    await writeFile(file, before)
    expect(visitor.troubles).toEqual([])
  })

  test('finds a server in the registry, which fills the form, with the keyboard only', async () => {
    const before = await text()
    await using visitor = await visit(browser, new URL(url).origin, gateway.token ?? '', {
      at: '/servers',
      viewport: { width: 390, height: 800 },
      colorScheme: 'dark',
    })
    const { page } = visitor
    const dialog = page.getByRole('dialog')
    const press = (name: string) => dialog.getByRole('button', { name }).press('Enter')
    await page.getByRole('button', { name: 'Add server' }).press('Enter')
    await dialog.getByText('Search the MCP registry').press('Enter')
    expect(registry.searches).toEqual([])
    const search = dialog.getByRole('searchbox', { name: 'Search the MCP registry' })
    await search.fill('weather')
    await search.press('Enter')
    await dialog.getByText('io.example/weather').waitFor()
    expect(registry.searches).toEqual(['weather'])
    await expectWhole(visitor)
    await press('Use https')
    await dialog.getByText('{tenant} in the URL').waitFor()
    await expectWhole(visitor)
    expect(await dialog.getByRole('textbox', { name: 'Name of the server' }).inputValue()).toBe('weather')
    await dialog.getByRole('textbox', { name: 'url', exact: true }).fill('https://acme.example.com/mcp')
    await press('Review')
    await dialog.getByRole('group', { name: /^Changes to/ }).waitFor()
    expect(await dialog.getByRole('group', { name: /^Changes to/ }).textContent()).toContain('acme.example.com')
    page.once('dialog', (question) => void question.accept())
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    expect(await text()).toBe(before)
    expect(visitor.troubles).toEqual([])
  })

  test('where the configuration is managed elsewhere, the pages say so and show the change', async () => {
    await using more = new AsyncDisposableStack()
    const other = join(folder.path, 'other.yaml')
    await writeFile(other, 'limits: { perMinute: 100 }\n')
    const start = async (paths: string[], own: boolean) => {
      const source = { paths, env: { ...process.env, HOME: folder.path }, cwd: folder.path }
      const loaded = await loadConfig(source)
      const options = { log: createKeptLog(), load: () => loadConfig(source), ...(own && { source }) }
      const started = more.use(await openGateway(loaded, options))
      return { origin: new URL((await started.listen()).url).origin, token: started.token ?? '' }
    }
    const before = await text()
    for (const [paths, own, reason] of [
      [[file, other], true, /merged from several files/],
      [[file], false, /started by a program/],
    ] as const) {
      const { origin, token } = await start([...paths], own)
      await using visitor = await visit(browser, origin, token, { at: '/config' })
      const { page } = visitor
      await page.getByText(reason).first().waitFor()
      await go(page, 'Servers')
      await page.getByRole('button', { name: 'Add server' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByRole('textbox', { name: /Command, URL/ }).fill('npx -y some-server')
      await dialog.getByRole('button', { name: 'Review' }).click()
      await dialog.getByText(reason).waitFor()
      expect(await dialog.getByRole('button', { name: 'Save', disabled: false }).count()).toBe(0)
      if (own) await dialog.getByText('Make this change in the file yourself.').waitFor()
      await expectWhole(visitor)
      expect(visitor.troubles).toEqual([])
    }
    expect(await text()).toBe(before)
  })
})
