import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { onTestFailed } from 'vitest'
import { type Browser, contextDefaults, isLong } from './chromium.ts'

/** A browser page at the dashboard. */
export interface Visit extends AsyncDisposable {
  readonly page: Page
  readonly context: BrowserContext
  /** Script errors, CSP violations and requests to other origins; not error responses of the API. */
  readonly troubles: readonly string[]
  /**
   * What axe finds wrong with the current page, at these sizes and colours. By default as it is; with
   * `TOOLWAY_TEST_RUNS=many` at all of them.
   */
  axe(looks?: readonly Look[]): Promise<readonly string[]>
  /** Opens another page as a link does: without loading the dashboard again. */
  follow(path: string): Promise<void>
  /** Texts in tables that are too small to read: below 13 px, or below 12 px in headers. */
  smallTexts(): Promise<readonly string[]>
  /** Headers of tables that cannot be sorted by; not those of columns with buttons or links only. */
  unsortable(): Promise<readonly string[]>
  /** Horizontal overflow in pixels. */
  overflow(): Promise<number>
}

/** The width of the window, and the theme. */
export type Look = readonly [width: number, scheme: 'dark' | 'light']

export const widths = [390, 768, 1280, 1920] as const

/** Whether axe sees everything at all sizes and in both themes, which takes minutes. */
export const axeSeesAll = process.env.TOOLWAY_TEST_RUNS === 'many'

export const allLooks: readonly Look[] = widths.flatMap((width): Look[] => [
  [width, 'dark'],
  [width, 'light'],
])

/** In ASCII: one other character doubles the size of the string, and the time to send and to parse it. */
const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8').replace(
  /[^\0-\x7f]/g,
  (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
)

/** Rules about lesser faults that take long. Only `TOOLWAY_TEST_RUNS=many` checks them. */
const lesserRules = ['aria-allowed-role', 'heading-order', 'landmark-unique', 'region']

// Only rules that are off by default need the style sheets.
const axeOptions = JSON.stringify({
  resultTypes: ['violations'],
  preload: false,
  // `axe.start` adds the element of a violation itself; axe would describe those that pass, too.
  selectors: false,
  elementRef: true,
  rules: Object.fromEntries(lesserRules.map((rule) => [rule, { enabled: axeSeesAll }])),
})

/**
 * Of elements that look the same, axe measures the contrast of so many until the dashboard is loaded again: it takes most
 * of the time.
 */
const maxContrasts = axeSeesAll ? Number.POSITIVE_INFINITY : 3

/** Elements look the same if their texts have the same style, as have the elements around that are not transparent. */
const axeSetup = `{
  const rule = axe._audit.rules.find(({ id }) => id === 'color-contrast')
  const { matches } = rule
  const check = axe._audit.checks['color-contrast']
  const { evaluate } = check
  const counts = new Map()
  let looks
  let around
  const clear = 'rgba(0, 0, 0, 0)'
  const surroundings = (element) => {
    if (element === null) return ''
    const known = around.get(element)
    if (known !== undefined) return known
    const { backgroundColor, backgroundImage, opacity, position } = getComputedStyle(element)
    const plain = backgroundColor === clear && backgroundImage === 'none' && opacity === '1' && position === 'static'
    const own = plain ? '' : [backgroundColor, backgroundImage, opacity, position].join() + ';'
    const all = own + surroundings(element.parentElement)
    around.set(element, all)
    return all
  }
  const isText = ({ nodeType, data }) => nodeType === Node.TEXT_NODE && data.trim() !== ''
  rule.matches = function (element, ...rest) {
    // The rule is about these only, and would find that out last.
    if (!element.matches('input, select, textarea') && ![...element.childNodes].some(isText)) return false
    const { color, fontSize, fontWeight, textShadow } = getComputedStyle(element)
    const look = [color, fontSize, fontWeight, textShadow, surroundings(element)].join()
    const count = counts.get(look) ?? 0
    if (count >= ${maxContrasts} || !matches.call(this, element, ...rest)) return false
    counts.set(look, count + 1)
    looks.set(element, look)
    return true
  }
  check.evaluate = function (element, ...rest) {
    const result = evaluate.call(this, element, ...rest)
    const look = looks.get(element)
    // Where axe cannot tell, the next run measures elements with this look again.
    if (result === undefined) counts.set(look, counts.get(look) - 1)
    return result
  }
  axe.configure({ noHtml: true })
  axe.start = async (options) => {
    looks = new Map()
    around = new Map()
    const { violations } = await axe.run(document, options)
    return violations.map(({ id, nodes }) => id + ': ' + nodes[0].element.outerHTML.slice(0, 200))
  }
}`

export interface VisitOptions extends BrowserContextOptions {
  /** The page to open when signing in. */
  readonly at?: string
  /** Another origin that the browser may be sent to. */
  readonly elsewhere?: string
  /** Whether the visit needs a context of its own, because it changes more than a page: with scripts for all of them. */
  readonly own?: boolean
}

interface OpenPage {
  readonly context: BrowserContext
  readonly page: Page
  close(): Promise<void>
}

/** A page whose addresses may be relative to this origin. */
async function openPage(
  browser: Browser,
  origin: string,
  { own = isLong, viewport, colorScheme, ...others }: Omit<VisitOptions, 'at' | 'elsewhere'>,
): Promise<OpenPage> {
  if (own || Object.keys(others).length > 0) {
    const size = viewport === undefined ? contextDefaults.viewport : viewport
    const context = await browser.newContext({
      ...contextDefaults,
      ...{ ...others, baseURL: origin, viewport: size },
      ...(colorScheme === undefined ? {} : { colorScheme }),
    })
    return { context, page: await context.newPage(), close: () => context.close() }
  }
  const { context, release } = await browser.borrowContext(origin)
  const page = await context.newPage()
  if (viewport) await page.setViewportSize(viewport)
  if (colorScheme !== undefined) await page.emulateMedia({ colorScheme })
  return { context, page, close: release }
}

/** Opens a page, and signs in if a token is given. */
export async function visit(
  browser: Browser,
  origin: string,
  token?: string,
  { at = '/', elsewhere = origin, ...options }: VisitOptions = {},
): Promise<Visit> {
  const { context, page, close } = await openPage(browser, origin, options)
  const troubles: string[] = []
  page.on('pageerror', ({ message }) => troubles.push(message))
  page.on('console', (message) => {
    const refused = message.text().startsWith('Failed to load resource')
    if (message.type() === 'error' && !refused) troubles.push(message.text())
  })
  page.on('request', (request) => {
    const expected = [origin, elsewhere, 'data:']
    if (!expected.some((start) => request.url().startsWith(start))) troubles.push(`asked ${request.url()}`)
  })
  if (token !== undefined) {
    await page.goto(`${at}#token=${token}`)
    await page.locator('.shell').waitFor()
  }
  const axe = async () => {
    if (await page.evaluate('typeof axe === "undefined"')) await page.evaluate(`${axeSource}\n${axeSetup}`)
    return (await page.evaluate(`axe.start(${axeOptions})`)) as readonly string[]
  }
  const show = async ([width, colorScheme]: Look, height: number) => {
    await page.setViewportSize({ width, height })
    await page.emulateMedia({ colorScheme })
  }
  return {
    ...{ page, context, troubles },
    async axe(looks = axeSeesAll ? allLooks : []) {
      if (looks.length === 0) return await axe()
      const { width, height } = page.viewportSize() ?? contextDefaults.viewport
      const isDark = await page.evaluate(`matchMedia('(prefers-color-scheme: dark)').matches`)
      const found: string[] = []
      for (const look of looks) {
        await show(look, height)
        found.push(...(await axe()).map((violation) => `${look.join(' px, ')}: ${violation}`))
      }
      await show([width, isDark ? 'dark' : 'light'], height)
      return found
    },
    async follow(path) {
      await page.evaluate(`new Promise((resolve) => {
        history.pushState(null, '', ${JSON.stringify(path)})
        // What the test before has typed may be discarded.
        const { confirm } = window
        window.confirm = () => true
        dispatchEvent(new PopStateEvent('popstate'))
        window.confirm = confirm
        // Twice: the page is rendered before the second frame.
        requestAnimationFrame(() => requestAnimationFrame(() => resolve()))
      })`)
    },
    smallTexts: () =>
      page.evaluate(`[...document.querySelectorAll('th, td')].flatMap((cell) => {
        const min = cell.matches('thead th') ? 12 : 13
        const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT)
        const small = []
        for (let text = texts.nextNode(); text; text = texts.nextNode()) {
          const size = parseFloat(getComputedStyle(text.parentElement).fontSize)
          if (text.data.trim() !== '' && size < min) small.push(size + 'px: ' + text.data)
        }
        return small
      })`) as Promise<string[]>,
    unsortable: () =>
      page.evaluate(`[...document.querySelectorAll('.table thead th:not(:has(button))')]
        .map((header) => header.textContent)
        .filter((text) => !['Actions', 'Explanation'].includes(text))`) as Promise<string[]>,
    overflow: async () =>
      Number(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')),
    [Symbol.asyncDispose]: close,
  }
}

/** One page for several tests. */
export interface SharedVisit extends AsyncDisposable {
  /** Opens a path as a link does, with nothing left of the page before. */
  at(path?: string): Promise<Visit>
}

/** The page that takes least time to show: it says that there is no such page. */
export const emptyPage = '/nowhere'

/**
 * Loads the dashboard once for tests that are not about loading it, which takes several times as long as what most of
 * them do. A failed test closes the page, so that the next one starts with a new one.
 */
export function shareVisit(open: () => Promise<Visit>): SharedVisit {
  let current: Visit | undefined
  const close = async () => {
    const closing = current
    current = undefined
    await closing?.[Symbol.asyncDispose]()
  }
  return {
    async at(path = emptyPage) {
      onTestFailed(close)
      current ??= await open()
      await current.follow(emptyPage)
      if (path !== emptyPage) await current.follow(path)
      return current
    },
    [Symbol.asyncDispose]: close,
  }
}
