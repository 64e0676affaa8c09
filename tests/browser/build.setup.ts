import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { provide } from '../fixtures/debian.ts'
import { noBrowser } from './chromium.ts'

/** Installs a browser where that is allowed, and builds the dashboard before the tests. */
export default function setup(): void {
  if (noBrowser !== undefined) provide('chromium', 'chromium', 'fonts-inter')
  execFileSync(process.execPath, [fileURLToPath(new URL('../../tooling/build-web.ts', import.meta.url))], {
    stdio: 'inherit',
  })
}
