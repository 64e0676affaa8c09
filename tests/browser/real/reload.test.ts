import { afterAll, beforeAll, expect, test } from 'vitest'
import { stdioServers } from '../../fixtures/servers.ts'
import { inBrowser } from '../in-browser.ts'
import { expectWhole, go, row, rows, title } from './pages.ts'
import { openWorld, type World } from './world.ts'

inBrowser('G8: configuration reload', () => {
  let world: World
  beforeAll(async () => {
    world = await openWorld()
  })
  afterAll(() => world[Symbol.asyncDispose]())

  const withServers = (mcpServers: object) => ({
    ...world.config,
    mcpServers: { ...world.config.mcpServers, ...mcpServers },
  })

  test('a new server appears automatically, the history lists changes, and an invalid configuration shows its error', async () => {
    await using visitor = await world.visit({ at: '/config' })
    await using other = await world.visit({ at: '/servers' })
    const { page } = visitor
    await title(page, 'Configuration')
    await page.getByText('None since Toolway started').waitFor()
    await row(other.page, 'Servers', 'memory')
    expect(await rows(other.page, 'Servers', 'extra').count()).toBe(0)

    await world.toolway.rewrite(withServers({ extra: stdioServers.manyTools('extra', 3) }))
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

    await world.toolway.rewrite({ ...world.config, limits: { perMinute: 'many' } })
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

    await world.toolway.rewrite(world.config)
    await go(page, 'Configuration')
    await page.getByText('server extra removed').waitFor()
    await page.getByRole('button', { name: 'Reload now' }).click()
    await page.getByRole('status').getByText('Reloaded: no effective changes.').waitFor()
    await expect.poll(() => rows(other.page, 'Servers', 'extra').count()).toBe(0)
    expect([...visitor.troubles, ...other.troubles]).toEqual([])
  })
})
