import { existsSync } from 'node:fs'
import { type Browser, type BrowserServer, chromium, type LaunchOptions } from 'playwright-core'

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** Why browser tests cannot run; undefined if they can. */
export const noBrowser: string | undefined =
  process.env.TOOLWAY_CHROMIUM === undefined && !places.some((place) => existsSync(place))
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

/** Uses the installed browser; nothing is downloaded. `TOOLWAY_CHROMIUM` overrides its path. */
function options(): LaunchOptions {
  const { TOOLWAY_CHROMIUM: chosen } = process.env
  const found = chosen ?? places.find((place) => existsSync(place))
  if (found === undefined) {
    throw new Error('There is no Chromium here. Install it ("apt-get install chromium"), or set TOOLWAY_CHROMIUM.')
  }
  // Chromium has no sandbox as root, and containers have little shared memory.
  return { executablePath: found, args: ['--no-sandbox', '--disable-dev-shm-usage'] }
}
