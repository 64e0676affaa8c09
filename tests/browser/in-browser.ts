import { describe, expect, test } from 'vitest'
import { whyNoBrowser } from './chromium.ts'

const noBrowser = whyNoBrowser()

/** Browser tests; skipped with a reason if there is no browser. */
export function inBrowser(title: string, tests: () => void): void {
  describe.skipIf(noBrowser !== undefined)(
    `${title}${noBrowser === undefined ? '' : ` (skipped: ${noBrowser})`}`,
    tests,
  )
  // Skipping is fine on a developer's machine, but not in CI.
  if (noBrowser !== undefined && process.env.CI) test(`${title}: a browser is available`, () => expect.fail(noBrowser))
}
