import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import type { Visit } from '../visit.ts'

/** Opens a page from the menu. */
export async function go(page: Page, name: string): Promise<void> {
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click()
  await title(page, name)
}

/** Waits for the title of a page. */
export const title = (page: Page, name: string): Promise<void> =>
  page.getByRole('heading', { level: 1, name }).waitFor()

/** Rows that contain all the given texts. */
export function rows(page: Page, table: string, ...words: (string | RegExp)[]): Locator {
  const all = page.getByRole('region', { name: table, exact: true }).locator('tbody tr')
  return words.reduce((found, word) => found.filter({ hasText: word }), all)
}

/** Waits for a row. */
export const row = (page: Page, table: string, ...words: (string | RegExp)[]): Promise<void> =>
  rows(page, table, ...words)
    .first()
    .waitFor()

/** Holds Tab until an element has the focus. */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor()
  let presses = 0
  let focused: boolean | undefined
  // Again if the element was replaced.
  while (!focused) {
    const element = (await target.elementHandle()) ?? expect.fail(`${target} is not on the page`)
    // Finding the element by its role each time takes longer than the key.
    const look = () => element.evaluate((one) => (one.isConnected ? one.matches(':focus') : undefined))
    for (focused = await look(); focused === false; focused = await look()) {
      expect(++presses, `Tab does not reach ${target}`).toBeLessThan(120)
      // Not released in between, which would take a fifth of the time.
      await page.keyboard.down('Tab')
    }
  }
  if (presses > 0) await page.keyboard.up('Tab')
}

/** Reaches a button or link with Tab, and presses Enter. */
export async function press(page: Page, target: Locator): Promise<void> {
  await tabTo(page, target)
  await page.keyboard.press('Enter')
}

/** Opens the search with Ctrl+K, types, and chooses the first option with this name. */
export async function jump(page: Page, words: string, option: RegExp): Promise<void> {
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Search' }).waitFor()
  await expect.poll(() => page.evaluate('document.activeElement.getAttribute("role")')).toBe('combobox')
  await page.keyboard.type(words)
  const wanted = page.getByRole('option', { name: option }).first()
  await wanted.waitFor()
  while ((await wanted.getAttribute('aria-selected')) !== 'true') await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  // A closed dialog stays in the document until the next frame, and the search does not open before.
  await page.locator('dialog').waitFor({ state: 'detached' })
}

/** The value of a tile. */
export const tile = (page: Page, name: string): Promise<string | null> =>
  page.locator('.tile').filter({ hasText: name }).locator('.tile-value').textContent()

/** G10: the page as it is has nothing that axe calls serious, fits the window, and nothing has gone wrong so far. */
export async function expectWhole(visit: Visit): Promise<void> {
  await expectFits(visit)
  expect(await visit.axe(), place(visit.page)).toEqual([])
}

const place = (page: Page): string => page.url().slice(new URL(page.url()).origin.length)

/** The same without axe, for pages that `operating.long.test.ts` shows to axe in the same state. */
export async function expectFits({ page, overflow, troubles }: Visit): Promise<void> {
  await expect.poll(() => page.locator('.loading').count()).toBe(0)
  const where = place(page)
  expect(await overflow(), where).toBe(0)
  expect(troubles, where).toEqual([])
}
