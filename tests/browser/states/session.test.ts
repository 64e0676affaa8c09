import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { openScene, type SceneServer } from '../stand-in/server.ts'
import { emptyPage, visit } from '../visit.ts'

inBrowser('G10: sessions', () => {
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

  test('G10: signing in leads to the requested page', async () => {
    await using visitor = await visit(browser, server.origin)
    const { page } = visitor
    await page.goto('/servers/memory')
    await page.getByLabel('Token or API key').fill('a wrong one')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').getByText('Invalid or expired token').waitFor()
    await page.getByLabel('Token or API key').fill('operator')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'memory' }).waitFor()
    expect(new URL(page.url()).pathname).toBe('/servers/memory')
  })

  test('B6: a token in the address is removed after use, and scripts cannot read the session', async () => {
    await using visitor = await visit(browser, server.origin)
    const { page } = visitor
    await page.goto('/tools?q=hash#token=operator')
    await page.getByRole('heading', { level: 1, name: 'Tools' }).waitFor()
    expect(page.url()).toBe(`${server.origin}/tools?q=hash`)
    await page.goBack()
    expect(page.url()).not.toContain('operator')
    await page.goto('/tools')
    expect(await page.evaluate('document.cookie')).toBe('')
    expect(await page.evaluate('JSON.stringify({ ...localStorage, ...sessionStorage })')).not.toContain('operator')
  })

  test('G10: signing out ends the session', async () => {
    await using visitor = await visit(browser, server.origin, 'operator', { at: emptyPage })
    const { page } = visitor
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Token or API key').waitFor()
    await page.reload()
    await page.getByLabel('Token or API key').waitFor()
  })

  test('G10: the sign-in page explains why a session ended', async () => {
    await using visitor = await visit(browser, server.origin, 'operator', { at: emptyPage })
    await visitor.context.clearCookies()
    const click = visitor.page.getByRole('link', { name: 'Tools', exact: true }).click()
    // A request of the page itself may have ended the session before the click.
    click.catch(() => {})
    await visitor.page.getByRole('alert').getByText('Your session has ended').waitFor()
  })

  test('G10: without admin rights, action buttons are disabled and explain why', async () => {
    await using visitor = await visit(browser, server.origin, 'dev', { at: '/servers/memory' })
    const { page } = visitor
    const restart = page.getByRole('button', { name: 'Restart' })
    await restart.waitFor()
    expect(await restart.getAttribute('aria-disabled')).toBe('true')
    expect(await restart.getAttribute('title')).toContain('admin')
    await restart.click({ force: true })
    expect(await page.getByRole('dialog').count()).toBe(0)
    await page.locator('dt', { hasText: 'Process' }).locator('+ dd').getByText('admins only').waitFor()
    await page.getByText('Only admins can see the output').waitFor()
    await page.goto('/audit')
    await page.getByRole('heading', { name: 'Only admins can see the audit log' }).waitFor()
  })

  test('G10: the chosen theme persists and applies from the first paint', async () => {
    await using visitor = await visit(browser, server.origin, 'operator', { at: emptyPage, colorScheme: 'light' })
    const { page } = visitor
    const background = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    const light = await background()
    await page.getByRole('button', { name: /Theme: system/ }).click()
    await page.getByRole('button', { name: /Theme: light/ }).click()
    await page.getByRole('button', { name: /Theme: dark/ }).waitFor()
    const dark = await background()
    expect(dark).not.toBe(light)
    await page.goto('/policy', { waitUntil: 'commit' })
    // A locator, because the CSP forbids evaluating strings.
    await page.locator('html[data-theme="dark"]').waitFor({ state: 'attached' })
    expect(await background()).toBe(dark)
  })
})
