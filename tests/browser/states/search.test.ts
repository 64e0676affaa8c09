import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { openScene, type SceneServer } from '../stand-in/server.ts'
import { emptyPage, type SharedVisit, shareVisit, visit } from '../visit.ts'

inBrowser('G10: the search dialog', () => {
  let browser: Browser
  let server: SceneServer
  let shared: SharedVisit
  beforeAll(async () => {
    browser = await openBrowser()
    server = await openScene('usual')
    shared = shareVisit(() => visit(browser, server.origin, 'operator', { at: emptyPage }))
  })
  afterAll(async () => {
    await browser.close()
    await server[Symbol.asyncDispose]()
  })

  const open = async (page: Page, keys = 'Control+k') => {
    await page.keyboard.press(keys)
    const field = page.getByRole('combobox', { name: 'Search' })
    await field.waitFor()
    await expect.poll(() => page.evaluate('document.activeElement.getAttribute("role")')).toBe('combobox')
    return field
  }
  const selected = (page: Page) => page.locator('[role=option][aria-selected=true]')
  const jump = async (page: Page, words: string, option: string) => {
    await open(page)
    await page.keyboard.type(words)
    await page.getByRole('option', { name: option }).first().waitFor()
    while (!(await selected(page).textContent())?.includes(option)) await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    // A closed dialog stays in the document until the next frame, and the search does not open before.
    await page.locator('dialog').waitFor({ state: 'detached' })
  }

  test('G10: Ctrl+K jumps to a page, server, tool, agent and call with the keyboard only', async () => {
    const visitor = await shared.at('/')
    const { page } = visitor
    const title = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor()
    await jump(page, 'defin', 'Definitions')
    await title('Definitions')
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('Definitions')
    await jump(page, 'github', 'github')
    await title('github')
    await jump(page, 'search iss', 'github__search_issues')
    await title('github__search_issues')
    await jump(page, 'researcher', 'researcher')
    await expect.poll(() => new URL(page.url()).searchParams.get('agent')).toBe('researcher')
    await jump(page, 'call_0020', 'call_0020')
    await page.getByRole('complementary', { name: 'Call' }).waitFor()
    expect(visitor.troubles).toEqual([])
  })

  test('G10: arrows wrap around; Escape closes and returns the focus; a message says that nothing was found', async () => {
    const visitor = await shared.at('/')
    const { page } = visitor
    const button = page.getByRole('button', { name: 'Search', exact: true })
    expect(await button.getAttribute('title')).toMatch(/K\)$/)
    await button.focus()
    const field = await open(page, 'Meta+k')
    const first = await selected(page).textContent()
    const active = () => field.getAttribute('aria-activedescendant')
    const firstId = await active()
    await page.keyboard.press('ArrowUp')
    expect(await active()).not.toBe(firstId)
    await page.keyboard.press('ArrowDown')
    expect(await selected(page).textContent()).toBe(first)
    await page.keyboard.type('no such thing')
    await page.getByText('Nothing found').waitFor()
    expect(await field.getAttribute('aria-expanded')).toBe('false')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await page.evaluate('document.activeElement.textContent.trim()')).toBe('Search')
  })

  test('G10: users without admin rights are offered only pages that they may see', async () => {
    await using visitor = await visit(browser, server.origin, 'dev')
    const { page } = visitor
    await open(page)
    const names = await page.getByRole('option').allTextContents()
    expect(names.join()).toContain('Servers')
    expect(names.filter((name) => /Keys|Audit|Configuration|Definitions/.test(name))).toEqual([])
    await page.keyboard.press('Escape')
    // Their shortcuts do nothing, either.
    await page.keyboard.press('g')
    await page.keyboard.press('k')
    expect(new URL(page.url()).pathname).toBe('/')
  })

  test('G10: a dialog whose code cannot be loaded says so and can be tried again', async () => {
    await using visitor = await visit(browser, server.origin, 'operator', { at: emptyPage })
    const { page } = visitor
    await page.route(/\/assets\/search-box-/, (route) => route.fulfill({ status: 404 }))
    await page.keyboard.press('Control+k')
    const again = page.getByRole('dialog').getByRole('button', { name: 'Try again' })
    await again.waitFor()
    expect(await visitor.axe()).toEqual([])
    await page.unroute(/\/assets\/search-box-/)
    const reloaded = page.waitForEvent('load')
    await again.press('Enter')
    const box = page.getByRole('combobox', { name: 'Search' })
    await Promise.any([box.waitFor(), reloaded])
    // Many browsers do not load a module again that could not be loaded, so the dashboard is reloaded there.
    if (!(await box.isVisible())) {
      await page.locator('.shell').waitFor()
      await page.keyboard.press('Control+k')
    }
    await box.waitFor()
  })
})
