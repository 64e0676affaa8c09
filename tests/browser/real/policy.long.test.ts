import { readFile, writeFile } from 'node:fs/promises'
import type { Locator } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { asking, keyFor } from '../../e2e/admin/people.ts'
import { connect } from '../../fixtures/clients.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { type SharedVisit, shareVisit, visit } from '../visit.ts'
import { expectWhole, go, row, title } from './pages.ts'

const dev = keyFor('dev', ['dev'])

inBrowser('V10: the policy', () => {
  let open: AsyncDisposableStack
  let toolway: LocalToolway
  let shared: SharedVisit
  beforeAll(async () => {
    open = new AsyncDisposableStack()
    toolway = open.use(
      await startToolway({
        history: {},
        mcpServers: { probe: stdioServers.probe() },
        agents: { dev: { allow: { tools: { probe: ['echo', 'pid'] } } } },
        auth: { keys: [dev.configured] },
      }),
    )
    await writeFile(toolway.configFile, (await text()).replace('{', '{ // mine\n'))
    await using client = await connect('v1', { endpoint: { url: toolway.url, token: dev.key } })
    for (const message of ['a', 'b', 'c']) await client.callTool('probe__echo', { message })
    await client.callTool('probe__pid', {})
    const browser = open.adopt(await openBrowser(), (one) => one.close())
    const { origin } = new URL(toolway.url)
    shared = shareVisit(() => visit(browser, origin, toolway.token, { at: '/policy' }))
  })
  afterAll(() => open.disposeAsync())

  const text = () => readFile(toolway.configFile, 'utf8')
  const mayEcho = async () => {
    const ask = asking(new URL(toolway.url).origin, toolway.token)
    return (await ask('why?agent=dev&tool=probe.echo')).json.allowed
  }

  test('is edited in a form, replayed over recorded calls, saved and undone; comments stay', async () => {
    const before = await text()
    const visitor = await shared.at()
    const { page } = visitor
    await go(page, 'Policy')
    await page.getByRole('tab', { name: 'Edit' }).click()
    await page.getByRole('heading', { name: 'Agent dev' }).waitFor()
    await expectWhole(visitor)
    // The first item of allow.tools.probe is echo.
    await page.getByRole('textbox', { name: '1', exact: true }).fill('die')
    await page.getByRole('button', { name: 'Review' }).press('Enter')
    await row(page, 'Changed permissions', 'probe.echo', 'was allowed')
    await row(page, 'Changed permissions', 'probe.die', 'was denied')
    await page.getByRole('button', { name: 'Replay' }).press('Enter')
    await page.getByText('Of 4 calls in the last 7 days, 3 would now be denied and 0 allowed.').waitFor()
    await row(page, 'Calls that would now be denied', 'dev', 'probe.echo', '3')
    await page.getByRole('group', { name: /^Changes to/ }).waitFor()
    await expectWhole(visitor)
    expect(await text()).toBe(before)
    await page.getByRole('button', { name: 'Save' }).press('Enter')
    await page.getByRole('button', { name: 'Undo' }).waitFor()
    const saved = await text()
    expect(saved).toBe(before.replace('"echo"', '"die"'))
    expect(saved).toContain('// mine')
    expect(await mayEcho()).toBe(false)

    const reloaded = Promise.withResolvers<void>()
    await page.route(/\/admin\/api\/policy$/, async (route) => {
      await reloaded.promise
      await route.continue()
    })
    await page.getByRole('button', { name: 'Undo' }).press('Enter')
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).press('Enter')
    await page.getByRole('button', { name: 'Undo' }).waitFor({ state: 'detached' })
    expect(await text()).toBe(before)
    expect(await mayEcho()).toBe(true)
    // The editor waits for the new settings, which would replace what is typed into the old ones.
    expect(await page.getByRole('tab', { name: 'YAML' }).count()).toBe(0)
    reloaded.resolve()
    await page.unrouteAll({ behavior: 'wait' })

    const size = page.viewportSize() ?? expect.fail('the page has no size')
    await page.setViewportSize({ width: 390, height: 800 })
    await page.getByRole('tab', { name: 'YAML' }).click()
    await page.getByRole('textbox', { name: 'Agent dev as YAML' }).fill('allow: { servers: [probe] }')
    await page.getByRole('button', { name: 'Review' }).click()
    await page.getByRole('button', { name: 'Replay' }).click()
    await page.getByText('0 would now be denied').waitFor()
    await expectWhole(visitor)
    await page.setViewportSize(size)
    expect(visitor.troubles).toEqual([])
  })

  test('is edited, replayed, saved and undone from the history with the keyboard only; limits and guards have forms', async () => {
    const before = await text()
    const visitor = await shared.at('/policy?view=edit&part=agents.dev')
    const { page } = visitor
    const press = async (target: Locator, ...keys: string[]) => {
      await target.waitFor()
      await target.focus()
      for (const key of keys) await page.keyboard.press(key)
    }
    const button = (name: string | RegExp) => page.getByRole('button', { name }).first()
    await press(page.getByRole('textbox', { name: '1', exact: true }), 'ControlOrMeta+A')
    await page.keyboard.type('die')
    await press(button('Review'), 'Enter')
    await press(button('Replay'), 'Enter')
    await page.getByText('Of 4 calls in the last 7 days, 3 would now be denied and 0 allowed.').waitFor()
    await press(button('Save'), 'Enter')
    await button('Undo').waitFor()
    const saved = await text()
    expect(saved).toBe(before.replace('"echo"', '"die"'))
    expect(await mayEcho()).toBe(false)

    await press(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Configuration' }), 'Enter')
    await title(page, 'Configuration')
    const edits = page.locator('li', { hasNotText: 'Undid' })
    await press(edits.getByRole('button', { name: /^Undo the edit of agents.dev/ }).first(), 'Enter')
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('group', { name: /^Changes to/ }).waitFor()
    await press(dialog.getByRole('button', { name: 'Save' }), 'Enter')
    await dialog.waitFor({ state: 'detached' })
    expect(await text()).toBe(before)
    expect(await mayEcho()).toBe(true)

    const diff = page.getByRole('group', { name: /^Changes to/ })
    await visitor.follow('/policy?view=edit&part=limits')
    await press(page.getByRole('textbox', { name: 'perMinute', exact: true }))
    await page.keyboard.type('30')
    await press(button('Review'), 'Enter')
    await expect.poll(() => diff.textContent()).toMatch(/"perMinute": ?30/)
    await visitor.follow('/policy?view=edit&part=mcpServers.probe.guards')
    await press(button('Back'), 'Enter')
    await page.getByRole('heading', { name: 'Guards of probe' }).waitFor()
    await press(button('Add item'), 'Enter')
    await page.getByRole('combobox', { name: 'Type of 1' }).selectOption({ label: 'kind: sql' })
    await expectWhole(visitor)
    await press(button('Review'), 'Enter')
    await expect.poll(() => diff.textContent()).toMatch(/"guards".*sql/s)
    expect(await text()).toBe(before)
    expect(visitor.troubles).toEqual([])
  })

  test('V9: a new agent with the name of another one is refused; the old one stays', async () => {
    const before = await text()
    const visitor = await shared.at('/policy?view=edit&part=agents.')
    const { page } = visitor
    await page.getByRole('textbox', { name: 'Name of the agent' }).fill('dev')
    await page.getByRole('button', { name: 'Review' }).click()
    await page.getByText('agents.dev already exists').first().waitFor()
    expect(await page.getByRole('button', { name: 'Save' }).count()).toBe(0)
    expect(await text()).toBe(before)
  })

  test('V9: typed text stays when others change the policy, and does not revert their changes', async () => {
    const before = await text()
    const othersWrite = async (content: string) => {
      await writeFile(toolway.configFile, content)
      await asking(new URL(toolway.url).origin, toolway.token)('config/reload', { method: 'POST' })
    }
    const visitor = await shared.at('/policy?view=edit&part=agents.dev')
    const { page } = visitor
    const yaml = page.getByRole('textbox', { name: 'Agent dev as YAML' })
    const review = page.getByRole('button', { name: 'Review' })
    const loadCurrent = page.getByRole('button', { name: 'Discard my changes and load the current values' })
    await page.getByRole('tab', { name: 'YAML' }).click()
    await yaml.fill('allow: { servers: [probe] }')
    const loaded = page.waitForResponse(/\/admin\/api\/policy$/)
    await othersWrite(before.replace('"agents":', '"limits": { "perMinute": 99 }, "agents":'))
    await loaded
    expect(await yaml.inputValue()).toBe('allow: { servers: [probe] }')
    await review.click()
    await page.getByRole('group', { name: /^Changes to/ }).waitFor()
    await page.getByRole('button', { name: 'Back' }).click()

    const theirs = before.replace('"echo"', '"die"')
    await othersWrite(theirs)
    await loadCurrent.waitFor()
    expect(await yaml.inputValue()).toBe('allow: { servers: [probe] }')
    await review.click()
    await page.getByText('agents.dev has been changed since you started to edit it').last().waitFor()
    expect(await page.getByRole('button', { name: 'Save' }).count()).toBe(0)
    await loadCurrent.last().click()
    await page.getByRole('textbox', { name: '1', exact: true }).waitFor()
    expect(await page.getByRole('textbox', { name: '1', exact: true }).inputValue()).toBe('die')
    expect(await loadCurrent.count()).toBe(0)

    await page.getByRole('tab', { name: 'YAML' }).click()
    await yaml.fill('allow: { servers: [probe] }')
    await othersWrite(before.replace('"dev"', '"ops"'))
    await page.getByRole('option', { name: 'Agent ops' }).waitFor({ state: 'attached' })
    expect(await yaml.inputValue()).toBe('allow: { servers: [probe] }')
    await review.click()
    await page.getByText('agents.dev has been removed since you started to edit it').first().waitFor()
    await othersWrite(before)
  })
})
