import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inBrowser } from '../in-browser.ts'
import type { Visit } from '../visit.ts'
import { expectFits, expectWhole, go, row, rows, title } from './pages.ts'
import { openWorld, type World } from './world.ts'

inBrowser('G10: with real servers', () => {
  let world: World
  beforeAll(async () => {
    world = await openWorld()
  })
  afterAll(() => world[Symbol.asyncDispose]())

  /** Searches for a tool and opens its form. */
  const trying = async (name: string): Promise<Visit> => {
    const visitor = await world.shared.at()
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
    const visitor = await world.shared.at()
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
    const graph = await readFile(join(world.toolway.folder, 'memory.jsonl'), 'utf8')
    expect(JSON.parse(graph)).toMatchObject({ name: 'Toolway', entityType: 'gateway' })
  })

  test('a destructive tool runs after confirmation', async () => {
    const visitor = await trying('filesystem__write_file')
    const { page } = visitor
    const path = join(world.files, 'written.txt')
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
    await page.getByLabel('source').fill(join(world.files, 'notes.md'))
    await page.getByLabel('destination').fill(join(world.files, 'moved.md'))
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
    await world.client.callTool('everything__echo', { message: 'for the record' })
    const visitor = await world.shared.at()
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
    const visitor = await world.shared.at()
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
    const visitor = await world.shared.at()
    const { page } = visitor
    await go(page, 'Calls')
    await world.client.callTool('everything__get-sum', { a: 2, b: 3 })
    await row(page, 'Calls', 'everything.get-sum', 'answered')
    await page.getByLabel('Server').selectOption('everything')
    await page.getByRole('link', { name: 'everything.get-sum' }).first().click()
    const call = page.getByRole('complementary', { name: 'Call' })
    await call.getByText(/^attempt/).waitFor()
    expect(visitor.troubles).toEqual([])
  })
})
