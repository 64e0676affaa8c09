import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fingerprint } from '../../tooling/build/fingerprint.ts'
import { provide } from '../fixtures/debian.ts'
import { endpointVariable, serveBrowser, whyNoBrowser } from './chromium.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const sources = ['web/{src,public}/**/*.*', 'web/*.{html,json}', 'tooling/build-web.ts', 'tooling/build/*.ts']

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

function installBrowser(): void {
  if (process.env.TOOLWAY_CHROMIUM !== undefined) return
  provide('chromium-headless-shell', 'chromium-headless-shell', 'fonts-inter')
  // Not every distribution has the shell as a package.
  if (whyNoBrowser() !== undefined) provide('chromium', 'chromium', 'fonts-inter')
}

function buildDashboard(): void {
  const folder = join(root, 'node_modules/.cache/toolway')
  const note = join(folder, 'dashboard')
  const hash = fingerprint(sources)
  const isBuilt =
    existsSync(join(root, 'web/dist/index.html')) && existsSync(note) && readFileSync(note, 'utf8') === hash
  if (isBuilt) return
  execFileSync(process.execPath, [join(root, 'tooling/build-web.ts')], { stdio: 'inherit' })
  mkdirSync(folder, { recursive: true })
  writeFileSync(note, hash)
}
