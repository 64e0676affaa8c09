import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { openScene, type SceneServer } from '../stand-in/server.ts'
import { emptyPage, type SharedVisit, shareVisit, type Visit, visit } from '../visit.ts'

inBrowser('G10: trying a tool', () => {
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

  const trying = async (tool: string): Promise<Visit> => {
    const visitor = await shared.at(`/tools/${tool}?view=try`)
    await visitor.page.getByRole('button', { name: 'Run' }).waitFor()
    return visitor
  }
  const run = (page: Page) => page.getByRole('button', { name: 'Run', exact: true }).click()
  const outcome = (page: Page) => page.getByTestId('outcome')

  test('G10: a form reports missing fields, sends the values, and shows the result', async () => {
    const visitor = await trying('github__search_issues')
    const { page } = visitor
    await run(page)
    await page.getByText('query is required').waitFor()
    expect(await outcome(page).count()).toBe(0)
    await page.getByLabel('query').fill('is:open')
    await run(page)
    await outcome(page).getByText('answered').waitFor()
    await outcome(page).getByText('"Names change"').waitFor()
    await page.getByRole('tab', { name: 'Structured' }).click()
    await outcome(page).getByText('total').waitFor()
    expect(await visitor.axe()).toEqual([])
  })

  test('G10: all kinds of fields produce values, and form and JSON stay in sync', async () => {
    const visitor = await trying('github__create_issue')
    const { page } = visitor
    await page.getByLabel('title').fill('Names change')
    await page.getByLabel('count').fill('1000')
    await page.getByLabel('kind', { exact: true }).selectOption('bug')
    await run(page)
    await page.getByText('count must be at most 100', { exact: true }).waitFor()
    await page.getByLabel('count').fill('3')
    await expect.poll(() => page.getByText('count must be at most 100', { exact: true }).count()).toBe(0)
    await page.getByLabel('dryRun').selectOption('false')
    await page.getByLabel('kind', { exact: true }).selectOption('bug')
    await page.getByLabel('due').fill('2026-03-01')
    await page.getByRole('button', { name: 'Add item' }).click()
    await page
      .getByRole('group', { name: /^labels/ })
      .getByLabel('1', { exact: true })
      .fill('urgent')
    await page.getByRole('button', { name: 'Add assignee' }).click()
    await page.getByLabel('name', { exact: true }).fill('Ada')
    await page.getByLabel('Type of target').selectOption({ label: 'Webhook' })
    await page.getByLabel('url').fill('https://example.com/hook')
    await page.getByRole('button', { name: 'Add extra' }).click()
    await page.getByLabel('Property name').fill('colour')
    await page.getByRole('button', { name: 'Add property' }).click()
    await page.getByLabel('colour', { exact: true }).fill('blue')
    await page.getByRole('tab', { name: 'JSON' }).click()
    const json = page.getByLabel('Arguments as JSON')
    const expected = {
      title: 'Names change',
      count: 3,
      dryRun: false,
      kind: 'bug',
      version: 2,
      due: '2026-03-01',
      labels: ['urgent'],
      assignee: { name: 'Ada', weight: 1 },
      target: { kind: 'hook', url: 'https://example.com/hook' },
      extra: { colour: 'blue' },
    }
    expect(JSON.parse(await json.inputValue())).toEqual(expected)
    await json.fill('{ "title": ')
    await page.getByText('Invalid JSON').waitFor()
    await json.fill(JSON.stringify({ ...expected, title: 'Other', labels: ['a', 'b'] }))
    await page.getByRole('tab', { name: 'Form' }).click()
    expect(await page.getByLabel('title').inputValue()).toBe('Other')
    expect(
      await page
        .getByRole('group', { name: /^labels/ })
        .getByLabel('2', { exact: true })
        .inputValue(),
    ).toBe('b')
    await run(page)
    await outcome(page).getByText('"title":"Other"').waitFor()
    expect(visitor.troubles).toEqual([])
  })

  test('G10: numbers of any length are sent and shown as they are', async () => {
    const visitor = await trying('github__create_issue')
    const { page } = visitor
    await page.getByLabel('title').fill('Long')
    await page.getByLabel('kind', { exact: true }).selectOption('bug')
    await page.getByRole('button', { name: 'Add assignee' }).click()
    await page.getByLabel('weight').fill('9007199254740993')
    await page.getByRole('tab', { name: 'JSON' }).click()
    const json = page.getByLabel('Arguments as JSON')
    expect(await json.inputValue()).toContain('"weight": 9007199254740993')
    await json.fill((await json.inputValue()).replace('9007199254740993', '12345678901234567890'))
    await page.getByRole('tab', { name: 'Form' }).click()
    expect(await page.getByLabel('weight').inputValue()).toBe('12345678901234567890')
    await page.getByLabel('name', { exact: true }).fill('Ada')
    const text = JSON.stringify('{"id":12345678901234567891}')
    const result = `{"content":[{"type":"text","text":${text}}],"structuredContent":{"id":1e400}}`
    const event = `{"kind":"end","outcome":{"call":"c","ms":1,"error":null,"result":${result}}}`
    let sent: string | null = null
    await page.route(/\/admin\/api\/playground$/, async (route) => {
      sent = route.request().postData()
      await route.fulfill({ contentType: 'text/event-stream', body: `data: ${event}\n\n` })
    })
    await run(page)
    await outcome(page).getByText('"id": 12345678901234567891').waitFor()
    expect(sent).toContain('"weight":12345678901234567890')
    await page.getByRole('tab', { name: 'Structured' }).click()
    await outcome(page).getByText('1e400').waitFor()
    await outcome(page).getByRole('tab', { name: 'JSON' }).click()
    await outcome(page).getByText('"id": 1e400').waitFor()
    await page.unrouteAll()
    expect(visitor.troubles).toEqual([])
  })

  test('E1: a denial shows its message and rule and links to the page of its code', async () => {
    const visitor = await trying('postgres__query')
    const { page } = visitor
    await page.getByLabel('sql').fill('UPDATE t SET a = 1')
    await run(page)
    await outcome(page).getByText('denied').waitFor()
    await outcome(page).getByText('mcpServers.postgres.guards[0]').waitFor()
    await outcome(page).getByRole('link', { name: 'UNSAFE_SQL' }).click()
    await page.getByRole('heading', { level: 1, name: 'UNSAFE_SQL' }).waitFor()
    await page.getByRole('heading', { name: 'What an operator can do' }).waitFor()
    expect(visitor.troubles).toEqual([])
  })

  test('G7: a call as another agent is subject to its rules', async () => {
    const visitor = await trying('memory__create_entities')
    const { page } = visitor
    await page.getByLabel('Act as agent').selectOption('researcher.junior')
    await run(page)
    await outcome(page).getByText('DENIED_BY_POLICY').waitFor()
  })

  test('G10: destructive tools need confirmation, tool errors and images are shown', async () => {
    const { page, troubles } = await trying('filesystem__write_file')
    await page.getByLabel('path').fill('/srv/a')
    await page.getByLabel('content').fill('b')
    await run(page)
    const dialog = page.getByRole('dialog', { name: 'Run filesystem__write_file' })
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    expect(await outcome(page).count()).toBe(0)
    await run(page)
    await dialog.getByRole('button', { name: 'Run' }).click()
    await outcome(page).getByText('Done').waitFor()

    await trying('filesystem__read_text_file')
    await page.getByLabel('path').fill('/nowhere')
    await run(page)
    await outcome(page).getByText('tool error').waitFor()

    await trying('browser__screenshot')
    await run(page)
    await outcome(page).getByRole('img', { name: 'Returned by the tool' }).waitFor()
    const width =
      'const image = document.querySelector("[data-testid=outcome] img"); image.decode().then(() => image.naturalWidth)'
    expect(await page.evaluate(width)).toBe(64)
    expect(troubles).toEqual([])
  })
})
