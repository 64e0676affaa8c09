import { existsSync } from 'node:fs'
import {
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Browser as LaunchedBrowser,
  type LaunchOptions,
} from 'playwright-core'

/** The headless shell renders as Chromium does and needs less than half the CPU time: it has no windows and toolbars. */
const places = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]

/** The installed browser; nothing is downloaded. `TOOLWAY_CHROMIUM` overrides its path. */
const findBrowser = (): string | undefined => process.env.TOOLWAY_CHROMIUM ?? places.find((place) => existsSync(place))

/** Why browser tests cannot run; undefined if they can. */
export const whyNoBrowser = (): string | undefined =>
  findBrowser() === undefined
    ? 'there is no Chromium here: install it ("apt-get install chromium"), or set TOOLWAY_CHROMIUM'
    : undefined

/** What tests use of a browser. */
export interface Browser {
  newContext(options?: BrowserContextOptions): Promise<BrowserContext>
  /** Closes what was opened here; the browser keeps running for the next file. */
  close(): Promise<void>
}

/** The browser of this test worker. It ends with the worker, which holds its pipe. */
let launched: LaunchedBrowser | undefined

/**
 * Starts a browser, or takes the one that an earlier file of this worker started. A browser that all workers share would
 * need another process between them and it, which takes more CPU time than a browser each.
 */
export async function openBrowser(): Promise<Browser> {
  const browser = launched?.isConnected() ? launched : await chromium.launch(options())
  launched = browser
  const contexts: BrowserContext[] = []
  return {
    async newContext(wanted) {
      const context = await browser.newContext(wanted)
      contexts.push(context)
      return context
    },
    async close() {
      await Promise.all(contexts.map((context) => context.close()))
    },
  }
}

/**
 * A page of most tests lives for seconds, and optimizing its code takes longer than that saves. With
 * `TOOLWAY_TEST_RUNS=many`, pages live for minutes, and tests measure how fast they are.
 */
const scriptFlags =
  process.env.TOOLWAY_TEST_RUNS === 'many' ? [] : ['--js-flags=--single-threaded --no-opt --no-maglev']

function options(): LaunchOptions {
  const found = findBrowser()
  if (found === undefined) throw new Error(`Browser tests cannot run: ${whyNoBrowser()}`)
  // Chromium has no sandbox as root, and containers have little shared memory.
  return { executablePath: found, args: ['--no-sandbox', '--disable-dev-shm-usage', ...scriptFlags] }
}
