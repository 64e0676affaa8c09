import { afterAll, beforeAll, expect, test } from 'vitest'
import { asking } from '../../e2e/admin/people.ts'
import { connect } from '../../fixtures/clients.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { visit } from '../visit.ts'
import { expectWhole, row, rows, title } from './pages.ts'

inBrowser('V9: keys', () => {
  let open: AsyncDisposableStack
  let toolway: LocalToolway
  let browser: Awaited<ReturnType<typeof openBrowser>>
  beforeAll(async () => {
    open = new AsyncDisposableStack()
    toolway = open.use(
      await startToolway({
        history: {},
        mcpServers: { probe: stdioServers.probe() },
        agents: { coder: { allow: { servers: ['probe'] } }, reader: { allow: { servers: [] } } },
        auth: { keys: [{ id: 'prometheus', hash: `sha256:${'0'.repeat(64)}`, agents: ['*'] }] },
      }),
    )
    browser = open.adopt(await openBrowser(), (one) => one.close())
  })
  afterAll(() => open.disposeAsync())

  const callWith = async (token: string) => {
    await using client = await connect('v2', { endpoint: { url: toolway.url, token } })
    return await client.callTool('probe__echo', { message: 'hello' })
  }

  const statusOf = async (token: string) => (await asking(new URL(toolway.url).origin, token)('session')).status

  test('are created and shown once, used, rotated and revoked, with the keyboard alone', async () => {
    const { origin } = new URL(toolway.url)
    await using visitor = await visit(browser, origin, toolway.token, { at: '/keys' })
    const { page } = visitor
    const dialog = page.getByRole('dialog')
    const secret = () => dialog.locator('pre').textContent()
    await title(page, 'Keys')
    await row(page, 'Keys', 'prometheus', 'from the configuration', 'auth.keys')
    expect(await rows(page, 'Keys', 'prometheus').getByRole('button').count()).toBe(0)

    await page.getByRole('button', { name: 'Create a key' }).press('Enter')
    await dialog.getByLabel('Name').fill('a b')
    await page.keyboard.press('Enter')
    await dialog.getByRole('alert').waitFor()
    await expectWhole(visitor)
    await dialog.getByLabel('Name').fill('bot')
    await dialog.getByRole('checkbox', { name: 'coder' }).press('Space')
    await dialog.getByLabel('Name').press('Enter')
    await dialog.getByText('shown only once').waitFor()
    const first = (await secret()) ?? ''
    expect(first).toMatch(/^twk_bot_[\w-]{43}$/)
    await expectWhole(visitor)
    await dialog.getByRole('button', { name: 'Done' }).press('Enter')
    await row(page, 'Keys', 'bot', 'coder', 'never')
    // The dialog is removed with the next frame.
    await expect.poll(() => page.content()).not.toContain(first)
    await expect.poll(() => statusOf(first)).toBe(200)

    await callWith(first)
    await page.reload()
    await title(page, 'Keys')
    await row(page, 'Keys', 'bot', /now|ago/)
    await page.getByRole('button', { name: 'Rotate bot' }).press('Enter')
    await dialog.getByRole('button', { name: 'Rotate' }).press('Enter')
    await dialog.getByText('shown only once').waitFor()
    const second = (await secret()) ?? ''
    expect(second).not.toBe(first)
    // A click outside must not lose the secret.
    await page.mouse.click(5, 5)
    await dialog.getByRole('button', { name: 'Done' }).press('Enter')
    await row(page, 'Keys', 'bot', 'old secret expires')
    await expect.poll(() => statusOf(second)).toBe(200)
    await callWith(second)
    await callWith(first)
    await expectWhole(visitor)

    await page.getByRole('button', { name: 'Revoke bot' }).press('Enter')
    await dialog.getByRole('button', { name: 'Revoke' }).press('Enter')
    await rows(page, 'Keys', 'bot').waitFor({ state: 'detached' })
    for (const key of [first, second]) {
      await expect.poll(() => statusOf(key)).toBe(401)
    }
    expect(visitor.troubles).toEqual([])
  })

  test('V9: that were rotated by others since the dialog was opened are rotated only after a second question', async () => {
    const { origin } = new URL(toolway.url)
    const ask = asking(origin, toolway.token)
    await ask('keys', { body: { id: 'shared' } })
    await using visitor = await visit(browser, origin, toolway.token, { at: '/keys' })
    const { page } = visitor
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Rotate shared' }).click()
    await dialog.getByText('Choose how long').waitFor()
    const { secret } = (await ask('keys/shared/rotate', { body: {} })).json
    const rotate = dialog.getByRole('button', { name: 'Rotate' })
    await rotate.click()
    await dialog.getByText('Rotating ends it immediately').waitFor()
    expect(await statusOf(secret)).toBe(200)
    await rotate.click()
    await dialog.getByText('shown only once').waitFor()
    await ask('keys/shared/revoke', { method: 'POST' })
    expect(visitor.troubles).toEqual([])
  })

  test('and their last use survive a restart', async () => {
    await using folder = await temporaryFolder()
    const config = { history: {}, mcpServers: { probe: stdioServers.probe() } }
    const first = await startToolway(config, { folder })
    const ask = asking(new URL(first.url).origin, first.token)
    const body = { id: 'bot', agents: ['*'], admin: false }
    const { secret } = (await ask('keys', { body })).json
    await expect.poll(async () => (await asking(new URL(first.url).origin, secret)('session')).status).toBe(200)
    await first[Symbol.asyncDispose]()

    await using second = await startToolway(config, { folder })
    const { origin } = new URL(second.url)
    await using visitor = await visit(browser, origin, second.token, { at: '/keys' })
    await row(visitor.page, 'Keys', 'bot', /now|ago/)
    await expect
      .poll(() => rows(visitor.page, 'Keys', 'bot', 'never').getByText('never', { exact: true }).count())
      .toBe(1)
    expect((await asking(origin, secret)('session')).status).toBe(200)
    expect(visitor.troubles).toEqual([])
  })
})
