import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDashboardBuilt } from '../../tooling/build/dashboard.ts'
import { provide, provideAll } from '../fixtures/debian.ts'
import { whyNoBrowser } from './chromium.ts'
import { unpackChromium } from './packaged-chromium.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Installs a browser where that is allowed, and builds the dashboard unless it is the one of these sources. */
export default function setup(): void {
  installBrowser()
  buildDashboard()
}

/** The smallest browser, with the libraries and fonts that the npm package needs, unless another one is given. */
export const shellParts = (): Record<string, string[]> =>
  process.env.TOOLWAY_CHROMIUM === undefined
    ? { 'chromium-headless-shell': ['chromium-headless-shell', 'fonts-inter'] }
    : {}

function installBrowser(): void {
  provideAll(shellParts())
  unpackChromium()
  // Not every distribution has the shell as a package.
  if (whyNoBrowser() !== undefined) provide('chromium', 'chromium', 'fonts-inter')
}

function buildDashboard(): void {
  if (!isDashboardBuilt()) execFileSync(process.execPath, [join(root, 'tooling/build-web.ts')], { stdio: 'inherit' })
}
