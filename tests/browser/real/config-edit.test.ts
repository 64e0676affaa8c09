import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import { createGateway, type Gateway } from '../../../src/runtime/gateway.ts'
import { connect } from '../../fixtures/clients.ts'
import { type Folder, temporaryFolder } from '../../fixtures/folders.ts'
import { createKeptLog } from '../../fixtures/log.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { visit } from '../visit.ts'
import { expectWhole, go, row, rows, title } from './pages.ts'

const first = (folder: string) => `# My gateway; do not lose this comment.
version: 1

stores: { path: ${JSON.stringify(join(folder, 'state'))} }
server: { port: 0 }     # any

mcpServers:
  # the first one
  first: ${JSON.stringify(stdioServers.manyTools('first', 2))}
`

inBrowser('V9: an operator manages servers in the browser', () => {
  const open = new AsyncDisposableStack()
  let folder: Folder
  let gateway: Gateway
  let file: string
  let url: string
  beforeAll(async () => {
    folder = open.use(await temporaryFolder())
    file = join(folder.path, 'toolway.yaml')
    await writeFile(file, first(folder.path))
    const env = { ...process.env, XDG_CONFIG_HOME: join(folder.path, 'config'), HOME: folder.path }
    const source = { paths: [file], env, cwd: folder.path }
    const load = () => loadConfig(source)
    gateway = open.use(await createGateway(await load(), { log: createKeptLog(), load, source, watch: true }))
    url = (await gateway.listen()).url
  })
  afterAll(() => open.disposeAsync())

  const text = () => readFile(file, 'utf8')

  test('adds a pasted server, tests it, saves it and calls it; edits, removes and undoes', async () => {
    const before = await text()
    const browser = open.adopt(await openBrowser(), (one) => one.close())
    await using visitor = await visit(browser, new URL(url).origin, gateway.token ?? '')
    const { page } = visitor
    const dialog = page.getByRole('dialog')
    const save = async () => {
      await dialog.getByRole('group', { name: /^Changes of/ }).waitFor()
      await expectWhole(visitor)
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.waitFor({ state: 'detached' })
    }

    await go(page, 'Servers')
    await page.getByRole('button', { name: 'Add server' }).click()
    const entry = { ...stdioServers.manyTools('second', 3), env: { API_TOKEN: 'only-once-secret' } }
    const pasted = JSON.stringify({ mcpServers: { second: entry } })
    await dialog.getByRole('textbox', { name: /Command, URL/ }).fill(pasted)
    await dialog.getByRole('button', { name: 'Test' }).click()
    await dialog.getByText('3 tools').waitFor()
    await expectWhole(visitor)
    await dialog.getByRole('button', { name: 'Review' }).click()
    await save()
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
    const definition = dialog.getByRole('textbox')
    await definition.fill(`description: Edited in the browser\n${await definition.inputValue()}`)
    await dialog.getByRole('button', { name: 'Review' }).click()
    await save()
    await page.getByText('Edited in the browser').first().waitFor()
    await expectWhole(visitor)

    await page.getByRole('button', { name: 'Disable', exact: true }).click()
    await save()
    await page.getByRole('button', { name: 'Enable', exact: true }).waitFor()

    await page.getByRole('button', { name: 'Remove', exact: true }).click()
    await save()
    await title(page, 'Servers')
    await expect.poll(() => rows(page, 'Servers', 'second').count()).toBe(0)
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
})
