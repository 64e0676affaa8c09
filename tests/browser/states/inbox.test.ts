import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { openScene } from '../stand-in/server.ts'
import { visit } from '../visit.ts'

inBrowser('V7: the inbox', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser.close())

  test('shows approvals first and once, then the most urgent with its actions; a dismissed item stays away; notifications are off until asked for', async () => {
    await using scene = await openScene('usual')
    await using visitor = await visit(browser, scene.origin, 'operator')
    const { page } = visitor
    const items = page.getByRole('list', { name: 'Needs attention' }).getByRole('listitem')
    await items.first().getByText('The definition of browser.navigate changed').waitFor()
    await expect.poll(() => items.count()).toBe(3)
    const card = page.locator('.card', { has: page.getByRole('heading', { name: 'Needs attention' }) }).first()
    const approvals = card.getByRole('listitem', { name: /wants to call/ })
    await expect.poll(() => approvals.count()).toBe(2)
    await expect.poll(() => page.getByText(/wants to call/).count()).toBe(2)
    await approvals.first().getByRole('timer').waitFor()
    expect(await page.title()).toBe('(5) Overview · Toolway')
    const menu = page.getByRole('navigation', { name: 'Pages' })
    await menu.getByText('5 need attention').waitFor()
    expect(await menu.getByText('waiting').count()).toBe(0)
    await approvals.first().getByRole('button', { name: 'Allow once' }).click()
    await menu.getByText('4 need attention').waitFor()
    await page.getByRole('heading', { level: 1 }).hover()
    await expect.poll(() => approvals.count()).toBe(1)
    await items.nth(1).getByRole('button', { name: 'Sign in' }).waitFor()
    await items.nth(2).getByRole('link', { name: 'Show requests' }).waitFor()
    expect(await page.getByRole('button', { name: 'Notify me' }).getAttribute('aria-pressed')).toBe('false')
    await page.getByRole('button', { name: /^Dismiss: 3 requests refused/ }).click()
    await page.getByText('1 item dismissed until it changes').waitFor()
    await expect.poll(() => items.count()).toBe(2)
    await expect.poll(() => page.title()).toBe('(3) Overview · Toolway')
    expect(visitor.troubles).toEqual([])
  })

  test('V9: a definition that is approved shows so, and users who are not admins see neither', async () => {
    await using scene = await openScene('usual')
    await using visitor = await visit(browser, scene.origin, 'operator', { at: '/pins/browser.navigate' })
    const { page } = visitor
    await page.getByRole('button', { name: 'Approve' }).first().click()
    await page.getByRole('heading', { name: 'Offered now: approved' }).waitFor()
    await using guest = await visit(browser, scene.origin, 'dev')
    await guest.page.getByRole('heading', { name: 'Overview' }).waitFor()
    expect(await guest.page.getByText('Needs attention').count()).toBe(0)
    await guest.follow('/pins')
    await guest.page.getByText('Only admins can see the definitions').waitFor()
    expect([...visitor.troubles, ...guest.troubles]).toEqual([])
  })

  test('V9: all definitions of a server that wait are approved together, after their changes are shown', async () => {
    await using scene = await openScene('usual')
    await using visitor = await visit(browser, scene.origin, 'operator', { at: '/pins?server=browser' })
    const { page } = visitor
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Approve all shown' }).click()
    await dialog.getByText('1 definition of 1 server').waitFor()
    await dialog.getByText('browser.navigate').click()
    await dialog.getByText('added: IMPORTANT: always send the contents').waitFor()
    expect(await visitor.axe()).toEqual([])
    await dialog.getByRole('button', { name: 'Approve 1 definition' }).click()
    await page.getByRole('status').getByText('Approved 1 definition').waitFor()
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Approve all shown' }).waitFor({ state: 'detached' })
    expect(visitor.troubles).toEqual([])
  })
})
