import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { provide } from '../fixtures/debian.ts'
import { noBrowser } from './chromium.ts'

/** The dashboard is built from what it is now, before any browser looks at it; there is a browser, if we may see to it. */
export default function setup(): void {
  if (noBrowser !== undefined) provide('chromium', 'chromium', 'fonts-inter')
  execFileSync(process.execPath, [fileURLToPath(new URL('../../tooling/build-web.ts', import.meta.url))], {
    stdio: 'inherit',
  })
}
