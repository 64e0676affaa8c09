import { afterAll, beforeAll, expect, test } from 'vitest'
import { inBrowser } from '../in-browser.ts'
import { type Visit, visit } from '../visit.ts'
import { expectWhole, go, title } from './pages.ts'
import { openWorld, type World } from './world.ts'

inBrowser('G10: a real gateway', () => {
  let world: World
  /** Not signed in. */
  let visitor: Visit
  beforeAll(async () => {
    world = await openWorld()
    visitor = await visit(world.browser, world.origin)
  })
  afterAll(() => world[Symbol.asyncDispose]())

  test('asks for a token, rejects a wrong one, and then opens the requested page', async () => {
    const { page } = visitor
    await page.goto('/servers/memory')
    await title(page, 'Sign in')
    await expectWhole(visitor)
    await page.getByLabel('Token or API key').fill('not the token')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').getByText('Invalid or expired token').waitFor()
    await page.getByLabel('Token or API key').fill(world.toolway.token)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await title(page, 'memory')
    expect(await page.evaluate('document.cookie')).toBe('')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await title(page, 'Sign in')
    await page.reload()
    await title(page, 'Sign in')
    expect(visitor.troubles).toEqual([])
  })

  test('every page has no axe violations, no overflow and no script errors', async () => {
    const { client } = world
    await client.callTool('everything__echo', { message: 'hello' })
    await client.callTool('filesystem__list_directory', { path: world.files })
    const { page } = visitor
    await page.emulateMedia({ colorScheme: 'light' })
    await page.goto(`/#token=${world.toolway.token}`)
    const link = (name: string) => page.getByRole('link', { name, exact: true }).first().click()
    const tab = (name: string) => page.getByRole('tab', { name, exact: true }).click()

    await title(page, 'Overview')
    await page.getByRole('img', { name: /^Calls per second\./ }).waitFor()
    await expectWhole(visitor)
    await go(page, 'Servers')
    await expectWhole(visitor)
    await link('filesystem')
    await title(page, 'filesystem')
    await expectWhole(visitor)
    await link('View tools')
    await title(page, 'Tools')
    await expectWhole(visitor)
    await link('filesystem__edit_file')
    await title(page, 'filesystem__edit_file')
    await expectWhole(visitor)
    for (const name of ['Try it', 'Who may use it']) {
      await tab(name)
      await expectWhole(visitor)
    }
    await go(page, 'Calls')
    await link('everything.echo')
    await page.getByRole('complementary', { name: 'Call' }).getByText('Timeline').waitFor()
    await expectWhole(visitor)
    await go(page, 'Policy')
    for (const name of ['Permissions', 'Why', 'Agents']) {
      await tab(name)
      await expectWhole(visitor)
    }
    await go(page, 'Audit')
    await link('everything.echo')
    await page.getByRole('complementary', { name: 'Audit record' }).waitFor()
    await expectWhole(visitor)
    await go(page, 'Configuration')
    await expectWhole(visitor)
    await visitor.follow('/errors/CIRCUIT_OPEN')
    await title(page, 'CIRCUIT_OPEN')
    await expectWhole(visitor)
    await visitor.follow('/nowhere')
    await title(page, 'Page not found')
    await expectWhole(visitor)
  })
})
