import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { openScene, type SceneDoor } from '../stand-in/door.ts'
import { visit } from '../visit.ts'

inBrowser('G10, S6: the chat page', () => {
  let browser: Browser
  let door: SceneDoor
  beforeAll(async () => {
    browser = await openBrowser()
    door = await openScene('usual')
  })
  afterAll(async () => {
    await browser.close()
    await door[Symbol.asyncDispose]()
  })

  const chatting = async (token = 'operator') => {
    const visitor = await visit(browser, door.origin, token, { at: '/chat' })
    await visitor.page.getByLabel('Message').waitFor()
    return visitor
  }
  const send = async (page: Page, text: string) => {
    await page.getByLabel('Message').fill(text)
    await page.getByLabel('Message').press('Enter')
  }
  const turn = (page: Page, number = 0) => page.locator('.turn').nth(number)

  test('an answer shows the tools that ran, their outcomes, and a link to the audit log', async () => {
    await using visitor = await chatting()
    const { page } = visitor
    await page.getByRole('combobox', { name: 'Model', exact: true }).selectOption('large')
    await page.getByRole('combobox', { name: 'Mode', exact: true }).selectOption('agent')
    await page.getByLabel('Act as agent').selectOption('researcher.junior')
    await send(page, 'How many issues?')
    await turn(page).getByText('12 open issues, says large to researcher.junior (agent), after 1 messages.').waitFor()
    // Model output is shown as text, never as HTML.
    await turn(page).getByText('<b>Plainly.</b>').waitFor()
    await turn(page).getByText('One tool failed.').waitFor()
    const tools = turn(page).getByRole('list', { name: 'Tools' }).locator('summary')
    expect(await tools.allTextContents()).toEqual([
      expect.stringMatching(/answered.*github__search_issues.*182 ms/),
      expect.stringMatching(
        /tool error.*filesystem__read_text_file.*3\.0 ms|tool error.*filesystem__read_text_file.*3 ms/,
      ),
    ])
    await tools.nth(1).click()
    await turn(page).getByText('ENOENT: no such file').waitFor()
    expect(await visitor.axe()).toEqual([])
    await send(page, 'And now?')
    await turn(page, 1).getByText('after 3 messages').waitFor()
    await turn(page, 1).getByRole('link', { name: 'Audit records', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Audit' }).waitFor()
    expect(new URL(page.url()).searchParams.get('parent')).toMatch(/^chat-/)
    // The conversation is kept while visiting other pages.
    await page.getByRole('link', { name: 'Chat' }).click()
    await turn(page, 1).waitFor()
    await page.getByRole('button', { name: 'New chat' }).click()
    await expect.poll(() => page.locator('.turn').count()).toBe(0)
    expect(visitor.troubles).toEqual([])
  })

  test('an answer can be stopped, errors are shown, and non-admins get no links to the audit log', async () => {
    await using visitor = await chatting('dev')
    const { page } = visitor
    await send(page, 'Go on for ever')
    await turn(page).getByText('Running tools…').waitFor()
    await turn(page).getByText('running', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await turn(page).getByText('Stopped').waitFor()
    await send(page, 'Please break')
    await turn(page, 1).getByRole('alert').getByText('The model has fallen silent.').waitFor()
    await turn(page, 1).getByText('There are').waitFor()
    await send(page, 'How many?')
    await turn(page, 2).getByText('after 1 messages').waitFor()
    expect(await page.locator('.turns').getByRole('link').count()).toBe(0)
    expect(visitor.troubles).toEqual([])
  })

  test('without a model it explains how to configure one', async () => {
    await using empty = await openScene('empty')
    await using visitor = await visit(browser, empty.origin, 'operator', { at: '/chat' })
    await visitor.page.getByRole('heading', { name: 'No model is configured' }).waitFor()
    expect(await visitor.page.getByLabel('Message').count()).toBe(0)
  })
})
