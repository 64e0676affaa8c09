import { existsSync } from 'node:fs'
import {
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Browser as LaunchedBrowser,
  type LaunchOptions,
  type Page,
} from 'playwright-core'
import { packagedChromium } from './packaged-chromium.ts'

/** The headless shell renders as Chromium does and needs less than half the CPU time: it has no windows and toolbars. */
const places = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]

/** The browser of the npm package, or the installed one. `TOOLWAY_CHROMIUM` overrides its path. */
const findBrowser = (): string | undefined =>
  process.env.TOOLWAY_CHROMIUM ?? packagedChromium() ?? places.find((place) => existsSync(place))

/** Why browser tests cannot run; undefined if they can. */
export const whyNoBrowser = (): string | undefined =>
  findBrowser() === undefined
    ? 'there is no Chromium here: install it ("apt-get install chromium"), or set TOOLWAY_CHROMIUM'
    : undefined

/** What tests use of a browser. */
export interface Browser {
  newContext(options?: BrowserContextOptions): Promise<BrowserContext>
  /** An empty context with this base URL. Its process may be one that served earlier visits. */
  borrowContext(origin: string): Promise<BorrowedContext>
  /** Closes what was opened here; the browser keeps running for the next file. */
  close(): Promise<void>
}

export interface BorrowedContext {
  readonly context: BrowserContext
  /** Closes its pages, and removes all that they stored. */
  release(): Promise<void>
}

/** A page that keeps the process of a context alive. */
interface KeptContext {
  readonly context: BrowserContext
  readonly keeper: Page
}

/** Size and preferences of pages, unless a visit has others. */
export const contextDefaults = {
  viewport: { width: 1280, height: 860 },
  reducedMotion: 'reduce',
} as const satisfies BrowserContextOptions

export interface BrowserOptions {
  /** Whether pages are painted, for pictures and for measuring how fast they are. Ignored if the browser runs already. */
  readonly painted?: boolean
}

/** The browser of this test worker. It ends with the worker, which holds its pipe. */
let launched: LaunchedBrowser | undefined

/** Contexts that no visit uses now. */
const kept: KeptContext[] = []

/**
 * Starts a browser, or takes the one that an earlier file of this worker started. A browser that all workers share would
 * need another process between them and it, which takes more CPU time than a browser each.
 */
export async function openBrowser({ painted = isLong }: BrowserOptions = {}): Promise<Browser> {
  if (!launched?.isConnected()) {
    kept.length = 0
    launched = await chromium.launch(options(painted))
  }
  const browser = launched
  const closings: (() => Promise<void>)[] = []
  return {
    async newContext(wanted) {
      const context = await browser.newContext(wanted)
      closings.push(() => context.close())
      return context
    },
    async borrowContext(origin) {
      const borrowed = borrow(kept.pop() ?? (await keepContext(browser, origin)), origin)
      closings.push(borrowed.release)
      return borrowed
    },
    async close() {
      await Promise.all(closings.map((close) => close()))
    },
  }
}

/** Opens a context with a page of this site, because a page shares its process with pages of the same site only. */
async function keepContext(browser: LaunchedBrowser, origin: string): Promise<KeptContext> {
  const context = await browser.newContext(contextDefaults)
  const keeper = await context.newPage()
  await keeper.goto(`${origin}/favicon.svg`)
  return { context, keeper }
}

function borrow({ context, keeper }: KeptContext, origin: string): BorrowedContext {
  // Playwright has no way to change the base URL of a context.
  const setBase = (page: Page) => {
    const goto = page.goto.bind(page)
    page.goto = (url, options) => goto(new URL(url, origin).href, options)
  }
  context.on('page', setBase)
  const clean = async () => {
    const opened = context.pages().filter((page) => page !== keeper)
    await Promise.all(opened.map((page) => page.close()))
    context.off('page', setBase)
    const session = await context.newCDPSession(keeper)
    await Promise.all([
      context.clearCookies(),
      context.clearPermissions(),
      session.send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' }),
    ])
    await session.detach()
    kept.push({ context, keeper })
  }
  let released: Promise<void> | undefined
  return {
    context,
    release() {
      released ??= clean().catch(() => context.close())
      return released
    },
  }
}

/** Whether pages live for minutes, and tests measure how fast they are. */
export const isLong = process.env.TOOLWAY_TEST_RUNS === 'many'

/**
 * A page of most tests lives for seconds, and optimizing its code takes longer than that saves. With a large young
 * generation, there is less garbage to collect.
 */
const scriptFlags = ['--single-threaded', '--no-opt', '--no-maglev', '--min-semi-space-size=16']

/** Pages of a context share a process: starting one takes as long as loading the dashboard. */
const shortFlags = ['--renderer-process-limit=1', `--js-flags=${scriptFlags.join(' ')}`]

/** Pages are laid out but not painted: painting takes a fifth of the CPU time, and tests read the document only. */
const unpaintedFlags = ['--blink-settings=acceleratedCompositingEnabled=false']

function options(painted: boolean): LaunchOptions {
  const found = findBrowser()
  if (found === undefined) throw new Error(`Browser tests cannot run: ${whyNoBrowser()}`)
  // Chromium has no sandbox as root, and containers have little shared memory.
  return {
    executablePath: found,
    args: [
      ...['--no-sandbox', '--disable-dev-shm-usage'],
      ...(isLong ? [] : shortFlags),
      ...(painted ? [] : unpaintedFlags),
    ],
  }
}
