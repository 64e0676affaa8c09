import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDashboardBuilt } from '../../tooling/build/dashboard.ts'
import { provide } from '../fixtures/debian.ts'
import { whyNoBrowser } from './chromium.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Installs a browser where that is allowed, and builds the dashboard unless it is the one of these sources. */
export default function setup(): void {
  installBrowser()
  buildDashboard()
}

function installBrowser(): void {
  if (process.env.TOOLWAY_CHROMIUM !== undefined) return
  provide('chromium-headless-shell', 'chromium-headless-shell', 'fonts-inter')
  // Not every distribution has the shell as a package.
  if (whyNoBrowser() !== undefined) provide('chromium', 'chromium', 'fonts-inter')
}

function buildDashboard(): void {
  if (!isDashboardBuilt()) execFileSync(process.execPath, [join(root, 'tooling/build-web.ts')], { stdio: 'inherit' })
}
