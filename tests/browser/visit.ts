import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { onTestFailed } from 'vitest'

/** A browser page at the dashboard. */
export interface Visit extends AsyncDisposable {
  readonly page: Page
  readonly context: BrowserContext
  /** Script errors, CSP violations and requests to other origins; not error responses of the API. */
  readonly troubles: readonly string[]
  /** Serious and critical axe violations of the current page. */
  axe(): Promise<readonly string[]>
  /** Opens another page as a link does: without loading the dashboard again. */
  follow(path: string): Promise<void>
  /** Texts in tables that are too small to read: below 13 px, or below 12 px in headers. */
  smallTexts(): Promise<readonly string[]>
  /** Headers of tables that cannot be sorted by; not those of columns with buttons or links only. */
  unsortable(): Promise<readonly string[]>
  /** Horizontal overflow in pixels. */
  overflow(): Promise<number>
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Neither serious nor critical, but expensive: their findings would be dropped. */
const lesserRules = ['aria-allowed-role', 'heading-order', 'landmark-unique', 'region']

// Only rules that are off by default need the style sheets.
const axeOptions = JSON.stringify({
  resultTypes: ['violations'],
  preload: false,
  rules: Object.fromEntries(lesserRules.map((rule) => [rule, { enabled: false }])),
})

export interface VisitOptions extends BrowserContextOptions {
  /** The page to open when signing in. */
  readonly at?: string
  /** Another origin that the browser may be sent to. */
  readonly elsewhere?: string
}

/** Opens a page, and signs in if a token is given. */
export async function visit(
  browser: Browser,
  origin: string,
  token?: string,
  { at = '/', elsewhere = origin, ...options }: VisitOptions = {},
): Promise<Visit> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 860 },
    baseURL: origin,
    reducedMotion: 'reduce',
    ...options,
  })
  const page = await context.newPage()
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
  return {
    ...{ page, context, troubles },
    async axe() {
      if (await page.evaluate('typeof axe === "undefined"')) await page.evaluate(axeSource)
      const found = await page.evaluate(`axe.run(document, ${axeOptions}).then(({ violations }) => violations)`)
      const violations = found as { id: string; impact: string; nodes: { html: string }[] }[]
      return violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 200)}`)
    },
    async follow(path) {
      await page.evaluate(`new Promise((resolve) => {
        history.pushState(null, '', ${JSON.stringify(path)})
        dispatchEvent(new PopStateEvent('popstate'))
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
    [Symbol.asyncDispose]: () => context.close(),
  }
}

/** One page for several tests. */
export interface SharedVisit extends AsyncDisposable {
  /** Opens a path as a link does, with nothing left of the page before. */
  at(path?: string): Promise<Visit>
}

const emptyPage = '/nowhere'

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
