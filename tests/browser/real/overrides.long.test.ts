import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openGateway } from '../../../src/admin/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import type { Gateway } from '../../../src/runtime/gateway-api.ts'
import { connect } from '../../fixtures/clients.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { createKeptLog } from '../../fixtures/log.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { visit } from '../visit.ts'
import { expectWhole, title } from './pages.ts'

const written = (folder: string) => `# Do not lose this comment.
stores: { path: ${JSON.stringify(join(folder, 'state'))} }
server: { port: 0 }
defaults: { expose: direct }
mcpServers:
  files: ${JSON.stringify(stdioServers.filesystem(folder))}
`

inBrowser('V15: an operator changes what models see of a tool', () => {
  const open = new AsyncDisposableStack()
  let browser: Awaited<ReturnType<typeof openBrowser>>
  let gateway: Gateway
  let file: string
  let url: string
  beforeAll(async () => {
    const folder = open.use(await temporaryFolder())
    file = join(folder.path, 'toolway.yaml')
    await writeFile(file, written(folder.path))
    const source = { paths: [file], env: { ...process.env, XDG_CONFIG_HOME: folder.path }, cwd: folder.path }
    const load = () => loadConfig(source)
    gateway = open.use(await openGateway(await load(), { log: createKeptLog(), load, source }))
    url = (await gateway.listen()).url
    await gateway.refresh()
    browser = open.adopt(await openBrowser(), (one) => one.close())
  })
  afterAll(() => open.disposeAsync())

  test('V15: the form shows what models will see and its cost, and edits the file', async () => {
    const at = '/tools/files__read_text_file'
    await using visitor = await visit(browser, new URL(url).origin, gateway.token ?? '', { at })
    const { page } = visitor
    const dialog = page.getByRole('dialog')
    await title(page, 'files__read_text_file')
    await page.getByRole('button', { name: 'Edit for models' }).click()
    await dialog.getByRole('textbox', { name: 'name', exact: true }).fill('show')
    await dialog.getByRole('textbox', { name: 'description', exact: true }).fill('Shows a file.')
    await dialog.getByText('"Shows a file."').waitFor()
    await dialog.getByText('"files__show"').waitFor()
    const cost = /(\d+) tokens; now (\d+) tokens/.exec((await dialog.textContent()) ?? '')
    expect(Number(cost?.[1])).toBeLessThan(Number(cost?.[2]))
    await expectWhole(visitor)
    await dialog.getByRole('button', { name: 'Review' }).click()
    await dialog.getByRole('group', { name: /^Changes to/ }).waitFor()
    await expectWhole(visitor)
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByText('changed for models').waitFor()
    await expectWhole(visitor)
    const text = await readFile(file, 'utf8')
    expect(text).toContain('# Do not lose this comment.')
    expect(text).toMatch(/tools:\s*\{?\s*"?read_text_file"?:/)
    await using client = await connect('v2', { endpoint: { url, token: gateway.token ?? '' } })
    const shown = JSON.stringify(await client.listTools())
    expect(shown).toContain('files__show')
    expect(shown).not.toContain('files__read_text_file')
  })
})
