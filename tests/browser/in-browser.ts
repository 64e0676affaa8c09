import { describe, expect, test } from 'vitest'
import { noBrowser } from './chromium.ts'

/** Tests that look at pages. Where there is no browser they are skipped, and say why. */
export function inBrowser(title: string, tests: () => void): void {
  describe.skipIf(noBrowser !== undefined)(
    `${title}${noBrowser === undefined ? '' : ` (skipped: ${noBrowser})`}`,
    tests,
  )
  // On other people's machines nothing is installed; where we test for all, silence would be a lie.
  if (noBrowser !== undefined && process.env.CI) test(`${title}: a browser can be had`, () => expect.fail(noBrowser))
}
