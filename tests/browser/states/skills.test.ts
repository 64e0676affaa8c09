import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { openScene } from '../stand-in/server.ts'
import { visit } from '../visit.ts'

inBrowser('W4: skills', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser.close())

  test('W4: the dashboard lists skills, and shows the text of one with its findings and decisions', async () => {
    await using scene = await openScene('usual')
    await using visitor = await visit(browser, scene.origin, 'operator', { at: '/skills' })
    const { page } = visitor
    await page.getByRole('link', { name: 'release-notes' }).click()
    await page.getByRole('heading', { name: 'SKILL.md' }).waitFor()
    const text = page.getByRole('region', { name: 'Text of the skill' })
    expect(await text.textContent()).toContain('merged pull requests')
    expect(await text.locator('mark').allTextContents()).toEqual(['\\u{200b}'])
    await page.getByRole('list', { name: 'Scanner findings' }).getByText('hidden-character').waitFor()
    await page.getByRole('button', { name: 'Approve' }).waitFor()
    await page.getByRole('button', { name: 'Block' }).waitFor()
    expect(visitor.troubles).toEqual([])
  })
})
