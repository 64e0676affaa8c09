import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { openScene, type SceneServer } from '../stand-in/server.ts'
import { emptyPage, type SharedVisit, shareVisit, visit } from '../visit.ts'

inBrowser('G10: keyboard', () => {
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

  const focused = (page: Page) => page.evaluate('document.activeElement.textContent')
  const press = async (page: Page, ...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key)
  }

  test('G10: g and a letter open each page and focus its title', async () => {
    const visitor = await shared.at('/')
    const { page } = visitor
    const places = {
      s: 'Servers',
      t: 'Tools',
      c: 'Calls',
      r: 'Approvals',
      p: 'Policy',
      a: 'Audit',
      f: 'Configuration',
      o: 'Overview',
    }
    for (const [letter, title] of Object.entries(places)) {
      await press(page, 'g', letter)
      await page.getByRole('heading', { level: 1, name: title }).waitFor()
      await expect.poll(() => focused(page)).toBe(title)
      expect(await page.title()).toMatch(new RegExp(`^(?:\\(\\d+\\) )?${title} · Toolway$`))
    }
  })

  test('G10: / focuses the search, where letters are not shortcuts', async () => {
    const visitor = await shared.at('/tools')
    const { page } = visitor
    await page.getByRole('link', { name: 'native__hash' }).waitFor()
    await press(page, '/')
    await page.keyboard.type('gs hash?')
    await expect.poll(() => page.url()).toContain('q=gs+hash')
    expect(new URL(page.url()).pathname).toBe('/tools')
    await page.getByRole('heading', { name: 'No matching tools' }).waitFor()
    await page.getByRole('searchbox').fill('hash')
    await page.getByRole('link', { name: 'native__hash' }).waitFor()
    await page.reload()
    expect(await page.getByRole('searchbox').inputValue()).toBe('hash')
  })

  test('G10: arrow keys move between rows, Enter opens one, Escape returns to it', async () => {
    const visitor = await shared.at('/servers')
    const { page } = visitor
    await page.getByRole('link', { name: 'github', exact: true }).focus()
    await press(page, 'ArrowDown', 'ArrowDown', 'ArrowUp')
    expect(await focused(page)).toBe('browser')
    await press(page, 'End', 'Home', 'ArrowDown', 'Enter')
    await page.getByRole('heading', { level: 1, name: 'browser' }).waitFor()
    await press(page, 'Escape')
    await page.getByRole('heading', { level: 1, name: 'Servers' }).waitFor()
    await expect.poll(() => focused(page)).toBe('browser')
  })

  test('G10: rows open by click, middle click and Ctrl+click, also in browsers that cannot position rows', async () => {
    const { page, context } = await shared.at('/servers')
    // As in Safari.
    await page.evaluate(`{
      const style = new CSSStyleSheet()
      style.replaceSync('tr { position: static !important }')
      document.adoptedStyleSheets = [style]
    }`)
    const cell = page.getByRole('row', { name: 'browser' }).getByRole('cell').nth(1)
    const clicks: Parameters<typeof cell.click>[0][] = [{ button: 'middle' }, { modifiers: ['Control'] }]
    for (const click of clicks) {
      const [other] = await Promise.all([context.waitForEvent('page'), cell.click(click)])
      await other.waitForURL('**/servers/browser')
      await other.close()
    }
    await page.getByRole('button', { name: 'Add server' }).click()
    await page.getByRole('dialog').waitFor()
    await press(page, 'Escape')
    await cell.click()
    await page.getByRole('heading', { level: 1, name: 'browser' }).waitFor()
    await page.evaluate('document.adoptedStyleSheets = []')
  })

  test('G10: Escape returns to the row even if it is pressed as soon as the page of the item appears', async () => {
    const { page } = await shared.at('/servers')
    await page.getByRole('link', { name: 'browser', exact: true }).focus()
    await page.evaluate(`new Promise((resolve) => {
      const watch = new MutationObserver(() => {
        if (!document.querySelector('.page-head [data-back]')) return
        watch.disconnect()
        setTimeout(() => {
          document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))
          resolve()
        })
      })
      watch.observe(document.body, { childList: true, subtree: true })
      document.activeElement.click()
    })`)
    await expect.poll(() => focused(page)).toBe('browser')
    expect(new URL(page.url()).pathname).toBe('/servers')
  })

  test('G10: ? opens the help, Escape closes it', async () => {
    const visitor = await shared.at('/')
    const { page } = visitor
    await press(page, '?')
    const help = page.getByRole('dialog', { name: 'Keyboard' })
    await help.waitFor()
    expect(await visitor.axe()).toEqual([])
    await press(page, 'g', 's')
    expect(new URL(page.url()).pathname).toBe('/')
    await press(page, 'Escape')
    await help.waitFor({ state: 'detached' })
  })

  test('G10: a dialog returns the focus to the button that opened it, also when another button closes it', async () => {
    const { page } = await shared.at('/keys')
    const opener = page.getByRole('button', { name: 'Create a key' })
    const dialog = page.getByRole('dialog')
    for (const name of ['Cancel', 'Escape']) {
      await opener.focus()
      await press(page, 'Enter')
      await dialog.waitFor()
      if (name === 'Escape') await press(page, name)
      else await dialog.getByRole('button', { name }).press('Enter')
      await dialog.waitFor({ state: 'detached' })
      expect(String(await focused(page)).trim()).toBe('Create a key')
    }
  })

  test('G10: over plain HTTP, where browsers offer no clipboard interface, a new key can be copied', async () => {
    await using visitor = await visit(browser, server.origin, 'operator', { at: '/keys' })
    const { page } = visitor
    await page.evaluate(`{
      Object.defineProperty(navigator, 'clipboard', { value: undefined })
      addEventListener('copy', () => (window.copied = document.activeElement.value))
    }`)
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Create a key' }).click()
    await dialog.getByLabel('Name').fill('plain')
    await press(page, 'Enter')
    await dialog.getByText('shown only once').waitFor()
    await dialog.getByRole('button', { name: /^Copy/ }).press('Enter')
    await dialog.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await page.evaluate('window.copied')).toMatch(/^twk_plain_a{43}$/)
    expect(await focused(page)).toBe('Copied')
  })

  test('G10: on a phone the menu opens and closes', async () => {
    const phone = { at: emptyPage, viewport: { width: 360, height: 740 } }
    await using visitor = await visit(browser, server.origin, 'operator', phone)
    const { page } = visitor
    const menu = page.getByRole('navigation', { name: 'Pages' })
    expect(await menu.isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Menu' }).click()
    await menu.getByRole('link', { name: 'Tools' }).click()
    await page.getByRole('heading', { level: 1, name: 'Tools' }).waitFor()
    await expect.poll(() => menu.isVisible()).toBe(false)
  })
})
