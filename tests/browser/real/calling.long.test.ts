import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inBrowser } from '../in-browser.ts'
import type { Visit } from '../visit.ts'
import { expectFits, expectWhole, go, row, rows, title } from './pages.ts'
import { type BrowserSetup, openBrowserSetup } from './setup.ts'

const execute = promisify(execFile)

/** For all tests of this file: starting its servers takes longer than most tests. */
let opening: Promise<BrowserSetup> | undefined
let setup: BrowserSetup
const open = async () => {
  opening ??= openBrowserSetup({ capture: ['everything'] })
  setup = await opening
}
afterAll(async () => (await opening)?.[Symbol.asyncDispose]())

inBrowser('V11: captured calls and the playground, with real servers', () => {
  beforeAll(open)

  const opened = (page: Page) => page.getByRole('complementary', { name: 'Call' })

  test('a captured call shows its result, runs again, and works when copied as curl', async () => {
    const message = `it's "quoted" $HOME \`x\``
    await setup.client.callTool('everything__echo', { message })
    const visitor = await setup.shared.at()
    const { page } = visitor
    await go(page, 'Calls')
    await row(page, 'Calls', 'everything.echo', 'answered')
    await page.getByRole('link', { name: 'everything.echo' }).first().click()
    const call = opened(page)
    await call.getByText(`Echo: ${message}`).first().waitFor()
    await call.getByText('policy and audit').waitFor()
    await expectWhole(visitor)

    await call.getByRole('button', { name: 'Run again' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Run again' }).click()
    await call.getByTestId('outcome').getByText('answered').waitFor()
    await call.getByTestId('outcome').getByText(`Echo: ${message}`).waitFor()

    await call.getByRole('button', { name: 'curl' }).click()
    const command = await call.getByRole('group', { name: 'Call as curl', exact: true }).textContent()
    const env = { ...process.env, TOOLWAY_TOKEN: setup.toolway.token ?? '' }
    const { stdout } = await execute('sh', ['-c', command ?? ''], { env })
    expect(JSON.parse(stdout)).toMatchObject({ result: { content: [{ text: `Echo: ${message}` }] }, error: null })
    await call.getByRole('button', { name: 'CLI' }).click()
    await call.getByText(/^toolway call everything\.echo --args/).waitFor()
    await expectWhole(visitor)
  })

  test('the list does not move while a call is open; a button shows new calls', async () => {
    const visitor = await setup.shared.at()
    const { page } = visitor
    await go(page, 'Calls')
    await page.getByRole('link', { name: 'everything.echo' }).first().click()
    const newest = () => page.locator('tbody tr').first().getByRole('link').getAttribute('href')
    const held = await newest()
    await setup.client.callTool('everything__get-sum', { a: 2, b: 3 })
    await page.getByRole('button', { name: /^[1-9]\d* new$/ }).waitFor()
    expect(await newest()).toBe(held)
    await page.getByRole('button', { name: /^[1-9]\d* new$/ }).click()
    await expect.poll(newest).not.toBe(held)
    await page.locator('label.filter', { hasText: /^Tool/ }).locator('select').selectOption('get-sum')
    await page.getByLabel('Slower than').selectOption('30000')
    await expect.poll(() => new URL(page.url()).search).toContain('slowerThan=30000')
    await page.getByText('No matching calls').waitFor()
    expect(visitor.troubles).toEqual([])
  })

  test('a tool reports its progress and is cancelled', async () => {
    const visitor = await setup.shared.at()
    const { page } = visitor
    await visitor.follow('/tools/everything__trigger-long-running-operation?view=try')
    await page.getByLabel('duration').fill('60')
    await page.getByLabel('steps').fill('600')
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await page.getByText(/^Running, /).waitFor()
    await page.getByRole('list', { name: 'Progress messages' }).getByText('2 of 600').waitFor()
    await expectWhole(visitor)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('Cancelled.').waitFor()
    await page.getByRole('link', { name: 'Timeline and audit record' }).click()
    await opened(page).getByRole('link', { name: 'CANCELLED' }).waitFor()
    await opened(page).getByRole('heading', { name: 'Progress' }).waitFor()
    expect(visitor.troubles).toEqual([])
  })

  test('V11: an elicitation and a sampling request are answered in the page', async () => {
    const visitor = await setup.shared.at()
    const { page } = visitor
    await visitor.follow('/tools/everything__trigger-elicitation-request?view=try')
    await title(page, 'everything__trigger-elicitation-request')
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    const question = page.getByRole('region', { name: 'Question from the server' })
    // Fields and values have their titles, and a character that changes the direction of text is visible.
    await question.getByLabel('String', { exact: true }).fill('Ada \u202eLovelace')
    await question.getByLabel('Legacy Titled Single Select Enum', { exact: true }).selectOption({ label: 'Dogs' })
    await expectWhole(visitor)
    await question.getByRole('button', { name: 'Send answer' }).click()
    await page.getByTestId('outcome').getByText('Ada \\u{202e}Lovelace').first().waitFor()

    await visitor.follow('/tools/everything__trigger-sampling-request?view=try')
    await page.getByLabel('prompt').fill('Say hello')
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await question.getByLabel('Answer').fill('Hello from a person')
    await question.getByRole('button', { name: 'Send answer' }).click()
    await page.getByTestId('outcome').getByText('Hello from a person').first().waitFor()
    expect(visitor.troubles).toEqual([])
  })

  test('resources are read, a template is filled in, and a prompt is completed', async () => {
    const visitor = await setup.shared.at()
    const { page } = visitor
    await go(page, 'Tools')
    await page.getByRole('tab', { name: 'Resources' }).click()
    await page.getByRole('searchbox', { name: 'Search resources' }).fill('dynamic text')
    await rows(page, 'Resources', /template/, /dynamic.text/)
      .getByRole('link')
      .first()
      .click()
    await page.getByLabel('resourceId').fill('1')
    await page.getByRole('button', { name: 'Read', exact: true }).click()
    await page
      .getByTestId('outcome')
      .getByText(/Resource 1/)
      .first()
      .waitFor()
    await expectWhole(visitor)
    await page.getByRole('tab', { name: 'Prompts' }).click()
    await page.getByRole('searchbox', { name: 'Search prompts' }).fill('completable')
    await page.getByRole('link', { name: /completable/ }).click()
    await page.getByLabel('department').fill('Eng')
    await page.locator('datalist option[value="Engineering"]').first().waitFor({ state: 'attached' })
    await page.getByLabel('department').fill('Engineering')
    await page.getByLabel('name', { exact: true }).fill('Alice')
    await page.getByRole('button', { name: 'Get', exact: true }).click()
    await page.getByTestId('outcome').getByText(/Alice/).first().waitFor()
    await expectWhole(visitor)
  })
})

inBrowser('G10: with real servers', () => {
  beforeAll(open)

  /** Searches for a tool and opens its form. */
  const trying = async (name: string): Promise<Visit> => {
    const visitor = await setup.shared.at()
    const { page } = visitor
    await go(page, 'Tools')
    await page.getByRole('searchbox', { name: 'Search tools' }).fill(name.replace('__', ' '))
    await page.getByRole('link', { name, exact: true }).click()
    await title(page, name)
    await page.getByRole('tab', { name: 'Try it' }).click()
    return visitor
  }
  const run = (page: Page) => page.getByRole('button', { name: 'Run', exact: true }).click()
  const outcome = (page: Page) => page.getByTestId('outcome')

  test('a search filters the tools; a tool shows its input, cost and permissions', async () => {
    const visitor = await setup.shared.at()
    const { page } = visitor
    await go(page, 'Tools')
    await page.getByRole('searchbox', { name: 'Search tools' }).fill('read text')
    await row(page, 'Tools', 'filesystem__read_text_file', 'read')
    await expect.poll(() => rows(page, 'Tools', 'memory__').count()).toBe(0)
    await page.getByRole('link', { name: 'filesystem__read_text_file' }).click()
    await page.getByText('Read the complete contents of a file').waitFor()
    await page.getByText(/^\d+ tokens$/).waitFor()
    await page.getByRole('tab', { name: 'Who may use it' }).click()
    await row(page, 'Who may use filesystem__read_text_file', 'researcher.junior', 'allowed')
    await expectFits(visitor)
  })

  test('a form with a choice returns an image', async () => {
    const visitor = await trying('everything__get-annotated-message')
    const { page } = visitor
    await run(page)
    await page.getByText('messageType is required').waitFor()
    await page.getByLabel('messageType').selectOption('success')
    await page.getByLabel('includeImage').selectOption('true')
    await run(page)
    await outcome(page).getByText('answered').waitFor()
    await outcome(page).getByText('Operation completed successfully').waitFor()
    await outcome(page).getByRole('img', { name: 'Returned by the tool' }).waitFor()
    await expectWhole(visitor)
  })

  test('objects in lists: a created entity is in the graph of the memory server', async () => {
    const visitor = await trying('memory__create_entities')
    const { page } = visitor
    const entities = page.getByRole('group', { name: /^entities/ })
    await entities.getByRole('button', { name: 'Add item' }).click()
    await entities.getByLabel('name', { exact: true }).fill('Toolway')
    await entities.getByLabel('entityType').fill('gateway')
    const observations = page.getByRole('group', { name: /^observations/ })
    await observations.getByRole('button', { name: 'Add item' }).click()
    await observations.getByLabel('1', { exact: true }).fill('puts many servers behind one endpoint')
    await run(page)
    await outcome(page).getByText('answered').waitFor()
    await outcome(page).getByText('puts many servers behind one endpoint').waitFor()
    await page.getByRole('tab', { name: 'Structured' }).click()
    await outcome(page).getByText('entityType').waitFor()
    await expectWhole(visitor)
    const graph = await readFile(join(setup.toolway.folder, 'memory.jsonl'), 'utf8')
    expect(JSON.parse(graph)).toMatchObject({ name: 'Toolway', entityType: 'gateway' })
  })

  test('a destructive tool runs after confirmation', async () => {
    const visitor = await trying('filesystem__write_file')
    const { page } = visitor
    const path = join(setup.files, 'written.txt')
    await page.getByLabel('path').fill(path)
    await page.getByLabel('content').fill('by hand')
    await run(page)
    const dialog = page.getByRole('dialog', { name: 'Run filesystem__write_file' })
    await dialog.getByRole('button', { name: 'Run' }).click()
    await outcome(page).getByText('answered').waitFor()
    expect(await readFile(path, 'utf8')).toBe('by hand')
    await page.getByLabel('path').fill('/etc/outside')
    await run(page)
    await dialog.getByRole('button', { name: 'Run' }).click()
    await outcome(page).getByText('tool error').waitFor()
    expect(visitor.troubles).toEqual([])
  })

  test('G6, F11: a denied call shows its code and rule, and appears in the calls and the audit log', async () => {
    const visitor = await trying('filesystem__move_file')
    const { page } = visitor
    await page.getByLabel('source').fill(join(setup.files, 'notes.md'))
    await page.getByLabel('destination').fill(join(setup.files, 'moved.md'))
    await page.getByLabel('Act as agent').selectOption('researcher.junior')
    await run(page)
    await page.getByRole('dialog').getByRole('button', { name: 'Run' }).click()
    await outcome(page).getByText('denied', { exact: true }).waitFor()
    await outcome(page).getByRole('link', { name: 'DENIED_BY_POLICY' }).waitFor()
    const rule =
      (await outcome(page)
        .getByText(/^agents\.researcher/)
        .textContent()) ?? ''
    expect(rule).toContain('deny')
    await expectWhole(visitor)

    await outcome(page).getByRole('link', { name: 'Timeline and audit record' }).click()
    const call = page.getByRole('complementary', { name: 'Call' })
    await call.getByText('never sent').waitFor()
    await call.locator('dl').getByText(rule).waitFor()
    await row(page, 'Calls', 'filesystem.move_file', 'denied', 'DENIED_BY_POLICY')
    await call.getByRole('link', { name: 'Why?' }).click()
    await page.getByRole('heading', { name: 'researcher.junior may not use filesystem.move_file' }).waitFor()

    await go(page, 'Audit')
    await page.getByLabel('Decision').selectOption('DENY')
    await page.getByLabel('Agent').fill('researcher.*')
    await page.getByRole('searchbox', { name: 'Search arguments' }).fill('moved.md')
    await row(page, 'Audit records', 'filesystem.move_file', 'DENY', 'researcher.junior')
    await expect.poll(() => rows(page, 'Audit records').count()).toBe(1)
    await page.getByRole('link', { name: 'filesystem.move_file' }).click()
    const record = page.getByRole('complementary', { name: 'Audit record' })
    await record.getByText('DENIED_BY_POLICY').waitFor()
    await record.getByText(rule).first().waitFor()
    await expectWhole(visitor)
  })

  test('F11: the hash chain of the audit log can be verified', async () => {
    await setup.client.callTool('everything__echo', { message: 'for the record' })
    const visitor = await setup.shared.at()
    const { page } = visitor
    await go(page, 'Audit')
    await page.getByText('not checked yet').waitFor()
    await page.getByRole('button', { name: 'Verify' }).click()
    await page.getByText('intact').waitFor()
    await page.getByText(/\d+ records, checked/).waitFor()
    await page.getByRole('searchbox', { name: 'Search arguments' }).fill('message=for the record')
    await row(page, 'Audit records', 'everything.echo', 'ALLOW')
    await expect.poll(() => rows(page, 'Audit records').count()).toBe(1)
    await expectWhole(visitor)
  })

  test('G6: the permission matrix links to the explanation of each decision', async () => {
    const visitor = await setup.shared.at()
    const { page } = visitor
    await go(page, 'Policy')
    await row(page, 'Agents', 'researcher.junior', 'inherits from researcher')
    await page.getByRole('tab', { name: 'Permissions' }).click()
    await page.getByRole('searchbox', { name: 'Search tools' }).fill('read_graph')
    await row(page, 'Permissions', 'memory.read_graph', /allowed.*allowed.*denied/)
    await expectFits(visitor)
    await page.getByTitle('researcher.junior, memory.read_graph: why?').click()
    await page.getByRole('heading', { name: 'researcher.junior may not use memory.read_graph' }).waitFor()
    await page.getByRole('heading', { name: 'Rules considered' }).waitFor()
    await expectWhole(visitor)
    await page.getByLabel('Agent').fill('researcher')
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByRole('heading', { name: 'researcher may use memory.read_graph' }).waitFor()
  })

  test('calls of agents appear live', async () => {
    const visitor = await setup.shared.at()
    const { page } = visitor
    await go(page, 'Calls')
    await setup.client.callTool('everything__get-tiny-image')
    await row(page, 'Calls', 'everything.get-tiny-image', 'answered')
    await page.getByLabel('Server').selectOption('everything')
    await page.getByRole('link', { name: 'everything.get-tiny-image' }).first().click()
    const call = page.getByRole('complementary', { name: 'Call' })
    await call.getByText(/^attempt/).waitFor()
    expect(visitor.troubles).toEqual([])
  })
})
