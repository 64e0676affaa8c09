import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** Why browser tests cannot run; undefined if they can. */
export const noBrowser: string | undefined =
  process.env.TOOLWAY_CHROMIUM === undefined && !places.some((place) => existsSync(place))
    ? 'there is no Chromium here: install it ("apt-get install chromium"), or set TOOLWAY_CHROMIUM'
    : undefined

/** Uses the installed browser; nothing is downloaded. `TOOLWAY_CHROMIUM` overrides its path. */
export async function openBrowser(): Promise<Browser> {
  const { TOOLWAY_CHROMIUM: chosen } = process.env
  const found = chosen ?? places.find((place) => existsSync(place))
  if (found === undefined) {
    throw new Error('There is no Chromium here. Install it ("apt-get install chromium"), or set TOOLWAY_CHROMIUM.')
  }
  // Chromium has no sandbox as root, and containers have little shared memory.
  return chromium.launch({ executablePath: found, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
}
