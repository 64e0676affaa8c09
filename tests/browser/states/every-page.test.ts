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
  '/pins',
  '/pins/browser.navigate',
  '/chat',
  '/calls',
  '/calls/call_0020',
  '/approvals',
  '/policy',
  '/policy?view=matrix',
  '/policy?view=edit',
  '/policy?view=why&agent=researcher&tool=filesystem.write_file',
  '/keys',
  '/audit',
  '/audit?record=b3f1:300',
  '/config',
  '/errors/CIRCUIT_OPEN',
  '/nowhere',
]

const lists = [
  '/',
  '/servers',
  '/tools',
  '/pins',
  '/calls',
  '/approvals',
  '/policy?view=matrix',
  '/keys',
  '/audit',
  '/config',
]
const refused = [
  '/',
  '/servers/browser',
  '/tools/github__create_issue?view=try',
  '/pins/browser.navigate',
  '/policy',
  '/keys',
  '/audit',
  '/config',
  '/chat',
]

/** One page per kind of failure. */
const failing = [
  '/',
  '/servers/browser',
  '/tools',
  '/calls/call_0020',
  '/policy?view=matrix',
  '/audit?record=b3f1:300',
  '/chat',
]

const desktop: BrowserContextOptions = { colorScheme: 'light' }
const phone: BrowserContextOptions = { colorScheme: 'dark', viewport: { width: 360, height: 740 } }

interface Look {
  readonly scene: SceneName
  readonly device: string
  readonly options: BrowserContextOptions
  readonly token: string
  /** Pages that differ from the usual scene; all if omitted. */
  readonly at?: readonly string[]
  /** Whether to run axe, which is slow; not needed for the same elements in every scene. */
  readonly axe: boolean
}

const looks: readonly Look[] = [
  { scene: 'usual', device: 'a dark phone', options: phone, token: 'operator', axe: true },
  { scene: 'crowded', device: 'a dark phone', options: phone, token: 'operator', axe: false, at: lists },
  { scene: 'empty', device: 'a light desktop', options: desktop, token: 'operator', axe: true, at: lists },
  { scene: 'failing', device: 'a dark phone', options: phone, token: 'operator', axe: true, at: failing },
  {
    scene: 'usual',
    device: 'a light desktop, without admin rights',
    options: desktop,
    token: 'dev',
    axe: false,
    at: refused,
  },
]

inBrowser('G10: every page', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser.close())

  describe.each(looks)('G10: scene $scene on $device', ({ scene, options, token, axe, at = paths }) => {
    test('every page has a title, no serious axe violations, no horizontal overflow, no small texts in tables and no script errors', async () => {
      await using door = await openScene(scene)
      await using visitor = await visit(browser, door.origin, token, options)
      const { page } = visitor
      for (const path of at) {
        await visitor.follow(path)
        await page.getByRole('heading', { level: 1 }).waitFor()
        // Wait until everything is loaded or has failed.
        await expect.poll(() => page.locator('.loading').count()).toBe(0)
        if (axe) expect(await visitor.axe(), path).toEqual([])
        expect(await visitor.overflow(), path).toBe(0)
        expect(await visitor.smallTexts(), path).toEqual([])
      }
      expect(visitor.troubles).toEqual([])
    })
  })
})
