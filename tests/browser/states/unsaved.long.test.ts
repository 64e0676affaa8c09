import type { Dialog, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { openScene, type SceneServer } from '../stand-in/server.ts'
import { visit } from '../visit.ts'

inBrowser('V9: unsaved input', () => {
  let browser: Browser
  let server: SceneServer
  beforeAll(async () => {
    browser = await openBrowser()
    server = await openScene('usual')
  })
  afterAll(async () => {
    await browser.close()
    await server[Symbol.asyncDispose]()
  })

  /** Answers questions before leaving, and returns how many there were. */
  function answering(page: Page) {
    const asked = { count: 0, leave: false }
    page.on('dialog', (question: Dialog) => {
      asked.count++
      void (asked.leave ? question.accept() : question.dismiss())
    })
    return asked
  }

  test('V9: a dialog asks before Escape, a click outside, Cancel or Back discards what was typed', async () => {
    await using visitor = await visit(browser, server.origin, 'operator', { at: '/servers' })
    const { page } = visitor
    const asked = answering(page)
    const dialog = page.getByRole('dialog')
    const input = dialog.getByRole('textbox', { name: /Command, URL/ })
    const open = async () => {
      await page.getByRole('button', { name: 'Add server' }).click()
      await input.waitFor()
    }
    await open()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    expect(asked.count).toBe(0)

    await open()
    await input.fill('npx memory')
    // Chromium does not let a page cancel the second one in a row.
    for (const _ of [1, 2, 3]) await page.keyboard.press('Escape')
    await page.mouse.click(5, 5)
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await page.evaluate('history.back()')
    await expect.poll(() => asked.count).toBe(6)
    expect(await input.inputValue()).toBe('npx memory')
    expect(new URL(page.url()).pathname).toBe('/servers')

    asked.leave = true
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    expect(visitor.troubles).toEqual([])
  })

  test('V9: the policy editor asks before another page or view discards what was typed', async () => {
    await using visitor = await visit(browser, server.origin, 'operator', { at: '/policy?view=edit' })
    const { page } = visitor
    const asked = answering(page)
    await page.getByRole('tab', { name: 'YAML' }).click()
    const text = page.getByRole('textbox', { name: /as YAML$/ })
    await text.fill('rules: []')
    await page.getByRole('link', { name: 'Tools', exact: true }).click()
    await page.getByRole('tab', { name: 'Agents' }).click()
    expect(asked.count).toBe(2)
    expect(await text.inputValue()).toBe('rules: []')
    asked.leave = true
    await page.getByRole('link', { name: 'Tools', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Tools' }).waitFor()
  })

  test('V9: what was typed is still there after the session has ended and the user has signed in again', async () => {
    await using visitor = await visit(browser, server.origin, 'operator', { at: '/servers', own: true })
    const { page } = visitor
    await page.getByRole('button', { name: 'Add server' }).click()
    const text = page.getByRole('dialog').locator('textarea')
    await text.fill('npx -y some-server')
    await visitor.context.clearCookies()
    await page.getByRole('button', { name: 'Review' }).click()
    const token = page.getByLabel('Token or API key')
    await token.waitFor()
    expect(await text.filter({ visible: true }).count()).toBe(0)
    expect(await visitor.axe()).toEqual([])
    await token.fill('operator')
    await token.press('Enter')
    await page.getByRole('button', { name: 'Back' }).click()
    expect(await text.inputValue()).toBe('npx -y some-server')
    expect(visitor.troubles).toEqual([])
  })

  test('V9: the form for a new server asks before it discards what was typed, also without a name', async () => {
    await using visitor = await visit(browser, server.origin, 'operator', { at: '/servers' })
    const { page } = visitor
    const asked = answering(page)
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Add server' }).click()
    await dialog.getByRole('button', { name: 'Use a form' }).click()
    await dialog.getByRole('tab', { name: 'YAML' }).click()
    const text = dialog.getByRole('textbox', { name: /as YAML$/ })
    await text.fill('command: npx')
    await page.mouse.click(5, 5)
    await expect.poll(() => asked.count).toBe(1)
    expect(await text.inputValue()).toBe('command: npx')
  })

  test('V9: a page with unsaved input sends no requests until the user has signed in again', async () => {
    await using visitor = await visit(browser, server.origin, 'operator', { at: '/servers', own: true })
    const { page } = visitor
    await page.getByRole('button', { name: 'Add server' }).click()
    await page.getByRole('textbox', { name: /Command, URL/ }).fill('npx memory')
    const refused: string[] = []
    page.on('response', (response) => {
      if (response.status() === 401) refused.push(new URL(response.url()).pathname)
    })
    await page.evaluate(`fetch('/admin/api/session', { method: 'DELETE', headers: { 'Toolway-Admin': '1' } })`)
    await page.getByRole('button', { name: 'Review' }).click()
    const token = page.getByLabel('Token or API key')
    await token.waitFor()
    // By now the gateway has closed the event stream, and the page would have tried to open it again.
    await page.waitForTimeout(9000)
    expect(refused).toEqual(['/admin/api/config/preview'])
    await token.fill('operator')
    await token.press('Enter')
    await page.getByRole('button', { name: 'Back' }).click()
    await page.getByText('Live', { exact: true }).first().waitFor({ state: 'attached' })
  })

  test('V9: only its button closes the dialog with a key that is shown once', async () => {
    await using visitor = await visit(browser, server.origin, 'operator', { at: '/keys' })
    const { page } = visitor
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Create a key' }).click()
    await dialog.getByLabel('Name').fill('bot')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByText('shown only once').waitFor()
    for (const _ of [1, 2, 3]) await page.keyboard.press('Escape')
    await page.mouse.click(5, 5)
    await dialog.getByText('shown only once').waitFor()
    await dialog.getByRole('button', { name: 'Done' }).click()
    await dialog.waitFor({ state: 'detached' })
  })
})
