import { existsSync } from 'node:fs'
import { type Browser, type BrowserServer, chromium, type LaunchOptions } from 'playwright-core'

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

/** Where the browser of this test run is, which `build.setup.ts` starts. */
export const endpointVariable = 'TOOLWAY_TEST_BROWSER'

/** Connects to the browser of the test run; closing it closes only what was opened over this connection. */
export async function openBrowser(): Promise<Browser> {
  const { [endpointVariable]: endpoint } = process.env
  return endpoint === undefined ? chromium.launch(options()) : chromium.connect(endpoint)
}

export const serveBrowser = (): Promise<BrowserServer> => chromium.launchServer(options())

function options(): LaunchOptions {
  const found = findBrowser()
  if (found === undefined) throw new Error(`Browser tests cannot run: ${whyNoBrowser()}`)
  // Chromium has no sandbox as root, and containers have little shared memory.
  return { executablePath: found, args: ['--no-sandbox', '--disable-dev-shm-usage'] }
}
