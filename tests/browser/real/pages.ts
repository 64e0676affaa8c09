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

/** The value of a tile. */
export const tile = (page: Page, name: string): Promise<string | null> =>
  page.locator('.tile').filter({ hasText: name }).locator('.tile-value').textContent()

/** G10: the page as it is has nothing that axe calls serious, fits the window, and nothing has gone wrong so far. */
export async function expectWhole({ page, axe, overflow, troubles }: Visit): Promise<void> {
  await expect.poll(() => page.locator('.loading').count()).toBe(0)
  const at = new URL(page.url())
  const where = at.pathname + at.search
  expect(await axe(), where).toEqual([])
  expect(await overflow(), where).toBe(0)
  expect(troubles, where).toEqual([])
}
