import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { openScene, type SceneServer } from '../stand-in/server.ts'
import { visit } from '../visit.ts'

inBrowser('V9: editing the configuration', () => {
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

  test('V9: a server is added with the keyboard only, on a dark phone; an edit with problems cannot be saved', async () => {
    const phone = { at: '/servers', viewport: { width: 390, height: 800 }, colorScheme: 'dark' as const }
    await using visitor = await visit(browser, server.origin, 'operator', phone)
    const { page } = visitor
    const dialog = page.getByRole('dialog')
    const press = async (name: string) => {
      await dialog.getByRole('button', { name }).focus()
      await page.keyboard.press('Enter')
    }
    await page.getByRole('button', { name: 'Add server' }).focus()
    await page.keyboard.press('Enter')
    const input = dialog.getByRole('textbox', { name: /Command, URL/ })
    await input.focus()
    await page.keyboard.type('bad')
    await press('Test')
    await dialog.getByText('1 tool (120 tokens)').waitFor()
    await dialog.getByText('instruction in description').waitFor()
    expect(await visitor.axe()).toEqual([])
    expect(await visitor.overflow()).toBe(0)
    await press('Review')
    await dialog.getByText('This cannot be saved').waitFor()
    expect(await dialog.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true)
    expect(await visitor.axe()).toEqual([])
    expect(await visitor.overflow()).toBe(0)
    await press('Back')
    await input.fill('npx memory')
    await press('Review')
    await dialog.getByRole('group', { name: /^Changes to/ }).waitFor()
    await dialog.getByText('No agent may use memory.').waitFor()
    await dialog.getByRole('group', { name: 'Allow it for' }).getByRole('checkbox', { name: 'ci' }).focus()
    await page.keyboard.press('Space')
    await dialog.getByText('ci may use memory.').waitFor()
    expect(await visitor.axe()).toEqual([])
    expect(await visitor.overflow()).toBe(0)
    await press('Save')
    await page.getByRole('status').getByText('Saved: server memory added').waitFor()
    await dialog.waitFor({ state: 'detached' })
    expect(visitor.troubles).toEqual([])
  })

  test('V9: a pasted server that is there under another name is not skipped in silence, and can be added', async () => {
    await using visitor = await visit(browser, server.origin, 'operator', { at: '/servers' })
    const { page } = visitor
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Add server' }).click()
    await dialog.getByRole('textbox', { name: /Command, URL/ }).fill('npx twin')
    await dialog.getByRole('button', { name: 'Review' }).click()
    await dialog.getByText('twin is not added: the configuration has the same server as memory.').waitFor()
    expect(await dialog.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true)
    expect(await visitor.axe()).toEqual([])
    await dialog.getByRole('button', { name: 'Add twin, too' }).click()
    await dialog.getByRole('button', { name: 'Save', disabled: false }).click()
    await page.getByRole('status').getByText('Saved: server memory added').waitFor()
  })

  test('B6: a pasted server gets values of variables and files only once a person has confirmed them', async () => {
    await using visitor = await visit(browser, server.origin, 'operator', { at: '/servers' })
    const { page } = visitor
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Add server' }).click()
    await dialog.getByRole('textbox', { name: /Command, URL/ }).fill('https://x.example.com/${TOKEN}')
    const questions: string[] = []
    const answer = (allow: boolean) =>
      page.once('dialog', (question) => {
        questions.push(question.message())
        void (allow ? question.accept() : question.dismiss())
      })
    answer(false)
    await dialog.getByRole('button', { name: 'Test' }).click()
    await page.getByRole('status').getByText('Not tested.').waitFor()
    answer(true)
    await dialog.getByRole('button', { name: 'Test' }).click()
    await dialog.getByText('1 tool (120 tokens)').waitFor()
    expect(questions).toEqual(Array(2).fill(expect.stringContaining('${TOKEN} for mcpServers.memory')))
    await dialog.getByRole('button', { name: 'Review' }).click()
    const save = dialog.getByRole('button', { name: 'Save' })
    const confirm = dialog.getByRole('checkbox', { name: /\$\{TOKEN\} for mcpServers\.memory/ })
    await confirm.waitFor()
    expect(await save.isDisabled()).toBe(true)
    expect(await visitor.axe()).toEqual([])
    await confirm.check()
    await save.click()
    await page.getByRole('status').getByText('Saved: server memory added').waitFor()
    expect(visitor.troubles).toEqual([])
  })
})
