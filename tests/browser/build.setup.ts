import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDashboardBuilt } from '../../tooling/build/dashboard.ts'
import { provide, provideAll } from '../fixtures/debian.ts'
import { endpointVariable, serveBrowser, whyNoBrowser } from './chromium.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Installs a browser where that is allowed, builds the dashboard unless it is the one of these sources, and starts a
 * browser that all tests share.
 */
export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  installBrowser()
  buildDashboard()
  if (whyNoBrowser() !== undefined) return undefined
  const browser = await serveBrowser()
  process.env[endpointVariable] = browser.wsEndpoint()
  return () => browser.close()
}

/** The smallest browser, unless another one is given. */
export const shellParts = (): Record<string, string[]> =>
  process.env.TOOLWAY_CHROMIUM === undefined
    ? { 'chromium-headless-shell': ['chromium-headless-shell', 'fonts-inter'] }
    : {}

function installBrowser(): void {
  provideAll(shellParts())
  // Not every distribution has the shell as a package.
  if (whyNoBrowser() !== undefined) provide('chromium', 'chromium', 'fonts-inter')
}

function buildDashboard(): void {
  if (!isDashboardBuilt()) execFileSync(process.execPath, [join(root, 'tooling/build-web.ts')], { stdio: 'inherit' })
}
