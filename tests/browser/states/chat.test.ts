import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { hugeTable } from '../stand-in/chat.ts'
import { openScene, type SceneServer } from '../stand-in/server.ts'
import { visit } from '../visit.ts'

/** A PNG of one pixel. */
const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

inBrowser('G10, S6: the chat page', () => {
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

  const chatting = async (token = 'operator') => {
    const visitor = await visit(browser, server.origin, token, { at: '/chat' })
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
    expect(await page.locator('.turns').getByRole('link', { name: 'Audit records' }).count()).toBe(0)
    expect(visitor.troubles).toEqual([])
  })

  test('Markdown: tables, links, lists and code that can be copied; each step shows its time and tokens', async () => {
    await using visitor = await chatting()
    const { page, context } = visitor
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await send(page, 'In markdown, please')
    const table = turn(page).getByRole('table')
    await table.getByRole('row', { name: 'Crash at start 12' }).waitFor()
    expect(await table.getByRole('columnheader').allTextContents()).toEqual(['Issue', 'Votes'])
    expect(await table.locator('td code').textContent()).toBe('a | b')
    await turn(page).getByText('Answered').waitFor()
    const link = turn(page).getByRole('link', { name: 'the manual' })
    expect(await link.getAttribute('href')).toBe('https://example.com/manual?a=1&b=2')
    expect(await link.getAttribute('rel')).toContain('noopener')
    expect(await link.getAttribute('target')).toBe('_blank')
    await turn(page).getByRole('button', { name: 'Copy: Code (sh)' }).click()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('toolway list --json | head -n 3')
    await turn(page).getByText('2 steps').click()
    const steps = turn(page).getByRole('list', { name: 'Steps' }).getByRole('listitem')
    expect(await steps.allTextContents()).toEqual([
      expect.stringMatching(/^Searching for tools.*120 ms.*911 tokens$/),
      expect.stringMatching(/^Writing the answer.*1\.38 s.*953 tokens$/),
    ])
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      expect(await visitor.axe(), colorScheme).toEqual([])
    }
    await page.setViewportSize({ width: 390, height: 800 })
    expect(await visitor.overflow()).toBe(0)
    expect(visitor.troubles).toEqual([])
  })

  test('hostile Markdown runs no script, loads nothing, and stays bounded', async () => {
    await using visitor = await chatting()
    const { page } = visitor
    await send(page, 'Be hostile')
    await turn(page).getByText('Answered').waitFor()
    const answer = turn(page).locator('.markdown')
    expect(await answer.locator('script, img, style, iframe, [onerror]').count()).toBe(0)
    const hrefs = await answer.locator('a').evaluateAll((links) => links.map((one) => one.getAttribute('href')))
    expect(hrefs).toEqual(['https://tracker.example/pixel.png', 'https://example.com'])
    // What is not formatted is shown as text.
    expect(await answer.textContent()).toContain('[run](javascript:alert(1))')
    expect(await answer.textContent()).toContain('<script>document.title')
    for (const part of ['deep', 'level 299', 'w'.repeat(60_000), 'c'.repeat(40_000)])
      expect((await answer.textContent())?.includes(part), part.slice(0, 10)).toBe(true)
    expect(await answer.locator('*').count()).toBeLessThan(5_000)
    expect(await page.title()).not.toContain('owned')
    expect(await visitor.overflow()).toBe(0)
    await send(page, 'Something huge')
    await turn(page, 1).getByText('Answered').waitFor()
    const huge = turn(page, 1).locator('.markdown')
    expect(await huge.locator('*').count()).toBeLessThan(5_000)
    expect((await huge.textContent())?.length).toBe(hugeTable.length)
    expect(await visitor.overflow()).toBe(0)
    expect(visitor.troubles).toEqual([])
  })

  test('a message is edited and an answer retried, with the keyboard only', async () => {
    await using visitor = await chatting()
    const { page } = visitor
    const { keyboard } = page
    const focused = () => page.evaluate('document.activeElement.getAttribute("aria-label")')
    const press = async (name: string, number = 0) => {
      await turn(page, number).getByRole('button', { name, exact: true }).focus()
      await keyboard.press('Enter')
    }
    await page.getByLabel('Message').focus()
    await keyboard.type('Please repeat one')
    await keyboard.press('Shift+Enter')
    await keyboard.type('second line')
    await keyboard.press('Enter')
    await turn(page).getByText('user: Please repeat one').waitFor()
    await send(page, 'Go on for ever')
    await turn(page, 1).getByText('Running tools…').waitFor()
    await page.getByRole('button', { name: 'Stop' }).focus()
    await keyboard.press('Enter')
    await turn(page, 1).getByText('Stopped').waitFor()
    expect(await focused()).toBe('Message')
    // Escape leaves the message as it was.
    await press('Edit', 1)
    await keyboard.type('Nothing of this')
    await keyboard.press('Escape')
    await turn(page, 1).getByText('Go on for ever').waitFor()
    expect(await page.evaluate('document.activeElement.textContent.trim()')).toBe('Edit')
    await press('Edit')
    await keyboard.press('ControlOrMeta+A')
    await keyboard.type('repeat: edited')
    await keyboard.press('Enter')
    await turn(page).getByText('user: repeat: edited', { exact: true }).waitFor()
    await expect.poll(() => page.locator('.turn').count()).toBe(1)
    expect(await focused()).toBe('Message')
    await send(page, 'repeat again')
    await turn(page, 1).getByText('Answered').waitFor()
    await expect.poll(() => turn(page, 1).locator('.markdown p').count()).toBe(3)
    // A retry of the first question removes the second one.
    await press('Retry')
    await expect.poll(() => page.locator('.turn').count()).toBe(1)
    await turn(page).getByText('Answered').waitFor()
    expect(await focused()).toBe('Message')
    expect(visitor.troubles).toEqual([])
  })

  test('images are attached for models that accept them, and only for these', async () => {
    await using visitor = await chatting()
    const { page } = visitor
    await page.getByLabel('Message').waitFor()
    expect(await page.getByLabel('Images').count()).toBe(0)
    await page.getByRole('combobox', { name: 'Model', exact: true }).selectOption('large')
    const attach = page.getByLabel('Images', { exact: true })
    const file = (name: string, mimeType = 'image/png', buffer = pixel) => ({ name, mimeType, buffer })
    await attach.setInputFiles([file('notes.txt', 'text/plain')])
    await page.getByRole('alert').getByText('notes.txt is not a PNG, JPEG, WebP or GIF image.').waitFor()
    await attach.setInputFiles([file('broken.png', 'image/png', Buffer.alloc(600 * 1024))])
    await page.getByRole('alert').getByText('broken.png cannot be read as an image.').waitFor()
    await attach.setInputFiles(['a', 'b', 'c', 'd', 'e'].map((name) => file(`${name}.png`)))
    await page.getByRole('alert').getByText('at most 4 images').waitFor()
    const attached = page.getByRole('list', { name: 'Attached images' }).getByRole('listitem')
    await expect.poll(() => attached.count()).toBe(4)
    for (const name of ['b', 'c', 'd']) await page.getByRole('button', { name: `Remove ${name}.png` }).click()
    await page.getByRole('combobox', { name: 'Model', exact: true }).selectOption('local')
    await send(page, 'repeat what you see')
    await page.getByRole('alert').getByText('local does not accept images.').waitFor()
    await page.getByRole('combobox', { name: 'Model', exact: true }).selectOption('large')
    expect(await visitor.axe()).toEqual([])
    await page.getByLabel('Message').press('Enter')
    await turn(page).getByText('user: repeat what you see {image_url}').waitFor()
    await turn(page).getByRole('img', { name: 'a.png' }).waitFor()
    expect(await attached.count()).toBe(0)
    // Images are not stored: after a reload only their names are there, and the model is told so.
    await page.reload()
    await page.getByText('Conversations').click()
    await page.getByRole('button', { name: 'repeat what you see', exact: true }).click()
    await turn(page).getByText('a.png').waitFor()
    await page.getByRole('combobox', { name: 'Model', exact: true }).selectOption('large')
    await send(page, 'repeat once more')
    await turn(page, 1).getByText('[image a.png, no longer available]').waitFor()
    expect(visitor.troubles).toEqual([])
  })

  test('conversations survive a reload, and can be opened, renamed and deleted', async () => {
    await using visitor = await chatting()
    const { page } = visitor
    const list = page.getByRole('list', { name: 'Conversations' }).getByRole('listitem')
    await send(page, 'repeat the first')
    await turn(page).getByText('Answered').waitFor()
    await page.getByRole('button', { name: 'New chat' }).click()
    await send(page, 'Go on for ever')
    await turn(page).getByText('Running tools…').waitFor()
    await page.reload()
    await page.getByText('Conversations').click()
    await expect.poll(() => list.count()).toBe(2)
    // An answer that was being written when the page was closed has been stopped.
    await list.nth(0).getByRole('button', { name: 'Go on for ever', exact: true }).press('Enter')
    await turn(page).getByText('Stopped').waitFor()
    await list.nth(1).getByRole('button', { name: 'Rename repeat the first' }).press('Enter')
    await page.getByLabel('Name of the conversation').fill('My notes')
    await page.keyboard.press('Enter')
    await list.getByRole('button', { name: 'My notes', exact: true }).click()
    await turn(page).getByText('user: repeat the first').waitFor()
    expect(await visitor.axe()).toEqual([])
    await page.setViewportSize({ width: 390, height: 800 })
    expect(await visitor.overflow()).toBe(0)
    await page.getByRole('button', { name: 'Delete My notes' }).click()
    await expect.poll(() => page.locator('.turn').count()).toBe(0)
    await page.getByRole('button', { name: 'Delete all' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete all' }).click()
    await expect
      .poll(() => page.evaluate('Object.keys(localStorage).filter((key) => key.includes("chat")).length'))
      .toBe(0)
    expect(visitor.troubles).toEqual([])
  })

  test('the tools that the model may use are chosen; a tool that ran links to its call', async () => {
    await using visitor = await chatting()
    const { page } = visitor
    await page.getByRole('button', { name: 'Tools: all' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'None' }).click()
    await dialog.getByRole('checkbox', { name: 'github', exact: true }).check()
    await dialog.getByRole('button', { name: 'Tools of filesystem' }).click()
    await dialog.getByRole('checkbox', { name: 'list_directory' }).check()
    expect(await visitor.axe()).toEqual([])
    await dialog.getByRole('button', { name: 'Done' }).click()
    await send(page, 'which tools?')
    await turn(page).getByText('github.*, filesystem.list_directory').waitFor()
    await send(page, 'How many issues?')
    await turn(page, 1).getByRole('link', { name: 'Call of github__search_issues' }).click()
    await page.getByRole('complementary', { name: 'Call' }).getByText('call_0039').first().waitFor()
    expect(visitor.troubles).toEqual([])
  })

  test('without a model it explains how to configure one', async () => {
    await using empty = await openScene('empty')
    await using visitor = await visit(browser, empty.origin, 'operator', { at: '/chat' })
    await visitor.page.getByRole('heading', { name: 'No model is configured' }).waitFor()
    expect(await visitor.page.getByLabel('Message').count()).toBe(0)
  })
})
