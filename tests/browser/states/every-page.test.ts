import type { Browser, BrowserContextOptions } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { openScene } from '../stand-in/door.ts'
import type { SceneName } from '../stand-in/scene.ts'
import { visit } from '../visit.ts'

const paths = [
  '/',
  '/servers',
  '/servers/browser',
  '/tools',
  '/tools/github__search_issues',
  '/tools/github__create_issue?view=try',
  '/tools/browser__navigate?view=who',
  '/calls',
  '/calls/call_0120',
  '/policy',
  '/policy?view=matrix',
  '/policy?view=why&agent=researcher&tool=filesystem.write_file',
  '/audit',
  '/audit?record=b3f1:300',
  '/config',
  '/errors/CIRCUIT_OPEN',
  '/nowhere',
]

const desktop: BrowserContextOptions = { colorScheme: 'light' }
const phone: BrowserContextOptions = { colorScheme: 'dark', viewport: { width: 360, height: 740 } }

const cases: readonly (readonly [scene: SceneName, device: string, options: BrowserContextOptions, token: string])[] = [
  ['usual', 'a light desktop', desktop, 'operator'],
  ['usual', 'a dark phone', phone, 'operator'],
  ['crowded', 'a dark phone', phone, 'operator'],
  ['empty', 'a light desktop', desktop, 'operator'],
  ['failing', 'a dark phone', phone, 'operator'],
  ['usual', 'a light desktop, without admin rights', desktop, 'dev'],
]

inBrowser('G10: every page', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser.close())

  describe.each(cases)('G10: a scene that is %s, on %s', (scene, _, options, token) => {
    test('every page is whole: a title, no faults that axe calls serious, nothing wider than the window, no script fails', async () => {
      await using door = await openScene(scene)
      await using visitor = await visit(browser, door.origin, token, options)
      const { page } = visitor
      for (const path of paths) {
        await page.goto(path)
        await page.getByRole('heading', { level: 1 }).waitFor()
        // Everything that was asked for is there or has failed; only the stream goes on.
        await expect.poll(() => page.locator('.loading').count()).toBe(0)
        expect(await visitor.axe(), path).toEqual([])
        expect(await visitor.overflow(), path).toBe(0)
      }
      expect(visitor.troubles).toEqual([])
    })
  })
})
