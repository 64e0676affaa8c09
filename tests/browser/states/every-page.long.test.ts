import type { BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Browser, openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import type { SceneName } from '../stand-in/scene.ts'
import { openScene } from '../stand-in/server.ts'
import { allLooks, axeSeesAll, type Look, type Visit, visit, widths } from '../visit.ts'

const paths = [
  '/',
  '/servers',
  '/servers/browser',
  '/tools',
  '/tools/github__search_issues',
  '/tools/github__create_issue?view=try',
  '/tools/browser__navigate?view=who',
  '/tools?view=resources&entry=toolway://github/repo://{owner}/{name}',
  '/tools?view=prompts&entry=github__review',
  '/skills',
  '/skills/skill:%2F%2Fgithub%2Facme%2Frelease-notes%2FSKILL.md',
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
  '/skills',
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

/** Dialogs, with the button that opens each. */
const dialogs = [
  { path: '/', button: 'Search' },
  { path: '/servers', button: 'Add server' },
  { path: '/servers/browser', button: 'Restart' },
  { path: '/keys', button: 'Create a key' },
]

/** The sizes and colours at which axe sees a page: two of eight, others for the next page. `TOOLWAY_TEST_RUNS=many` tries all. */
const axeLooks = (index: number): readonly Look[] =>
  axeSeesAll
    ? allLooks
    : [
        [widths[index % 4] as number, 'dark'],
        [widths[(index + 2) % 4] as number, 'light'],
      ]

const desktop: BrowserContextOptions = { colorScheme: 'light' }
const phone: BrowserContextOptions = { colorScheme: 'dark', viewport: { width: 360, height: 740 } }

interface Scene {
  readonly scene: SceneName
  readonly device: string
  readonly options: BrowserContextOptions
  readonly token: string
  /** Pages that differ from the usual scene on a desktop. */
  readonly at: readonly string[]
  /** Whether to run axe, which is slow; not needed for the same elements in every scene. */
  readonly axe: boolean
}

const scenes: readonly Scene[] = [
  { scene: 'crowded', device: 'a dark phone', options: phone, token: 'operator', axe: false, at: lists },
  { scene: 'empty', device: 'a light desktop', options: desktop, token: 'operator', axe: false, at: lists },
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

  describe.each(scenes)('G10: scene $scene on $device', ({ scene, options, token, axe, at }) => {
    test('every page has a title, no axe violations, no horizontal overflow, no small texts in tables and no script errors', async () => {
      await using server = await openScene(scene)
      await using visitor = await visit(browser, server.origin, token, options)
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

  const loaded = async (page: Page) => {
    await page.getByRole('heading', { level: 1 }).waitFor()
    await expect.poll(() => page.locator('.loading').count()).toBe(0)
  }

  /** Checks what is shown at all widths, without loading it again. Returns what is wrong. */
  async function problemsOf(visitor: Visit, place: string, index: number): Promise<readonly string[]> {
    const { page } = visitor
    const found: string[] = []
    for (const width of widths) {
      const at = (what: string) => `${place} at ${width} px: ${what}`
      await page.setViewportSize({ width, height: 860 })
      const overflow = await visitor.overflow()
      if (overflow !== 0) found.push(at(`${overflow} px too wide`))
      // Only a narrow screen may have other sizes; only a wide one shows all columns.
      if (width === widths[0] || width === widths[3])
        found.push(...(await visitor.smallTexts()).map((text) => at(`too small, ${text}`)))
      for (const [, colorScheme] of axeLooks(index).filter(([wanted]) => wanted === width)) {
        await page.emulateMedia({ colorScheme })
        found.push(...(await visitor.axe([])).map((violation) => at(`${colorScheme}: ${violation}`)))
      }
    }
    await page.emulateMedia({ colorScheme: 'light' })
    found.push(...(await visitor.unsortable()).map((title) => `${place}: cannot be sorted by ${title}`))
    return found
  }

  test('G10: every page and dialog is accessible in light and dark from 390 to 1,920 px, and its tables can be read and sorted', async () => {
    await using server = await openScene('usual')
    await using visitor = await visit(browser, server.origin, 'operator')
    const { page } = visitor
    const problems: string[] = []
    for (const [index, path] of paths.entries()) {
      await visitor.follow(path)
      await loaded(page)
      problems.push(...(await problemsOf(visitor, path, index)))
    }
    for (const [index, { path, button }] of dialogs.entries()) {
      await visitor.follow(path)
      await loaded(page)
      await page.getByRole('button', { name: button, exact: true }).click()
      await page.getByRole('dialog').waitFor()
      await loaded(page)
      problems.push(...(await problemsOf(visitor, `${button} on ${path}`, index)))
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    }
    expect(problems).toEqual([])
    expect(visitor.troubles).toEqual([])
  }, 900_000)

  test('G10: users without admin rights find no link to a page that refuses them', async () => {
    await using server = await openScene('usual')
    await using visitor = await visit(browser, server.origin, 'dev')
    const { page } = visitor
    const links = () => page.evaluate(`[...document.querySelectorAll('a[href^="/"]')].map(({ pathname }) => pathname)`)
    const seen = new Set<string>()
    for (const path of [
      '/',
      '/servers',
      '/servers/browser',
      '/tools',
      '/calls?q=nothing',
      '/policy',
      '/approvals',
      '/chat',
    ]) {
      await visitor.follow(path)
      await loaded(page)
      expect(await page.getByRole('heading', { name: 'Only admins can see' }).count(), path).toBe(0)
      for (const link of (await links()) as string[]) seen.add(link)
    }
    expect([...seen].filter((link) => /^\/(?:skills|pins|keys|audit|config)(?:\/|$)/.test(link))).toEqual([])
  })
})
