import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inBrowser } from '../in-browser.ts'
import { expectWhole, go, row, rows, title } from './pages.ts'
import { openWorld, type World } from './world.ts'

const run = promisify(execFile)

inBrowser('V11: captured calls and the playground, with real servers', () => {
  let world: World
  beforeAll(async () => {
    world = await openWorld({ capture: ['everything'] })
  })
  afterAll(() => world[Symbol.asyncDispose]())

  const opened = (page: Page) => page.getByRole('complementary', { name: 'Call' })

  test('a captured call shows its result, runs again, and works when copied as curl', async () => {
    const message = `it's "quoted" $HOME \`x\``
    await world.client.callTool('everything__echo', { message })
    const visitor = await world.shared.at()
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
    const env = { ...process.env, TOOLWAY_TOKEN: world.toolway.token ?? '' }
    const { stdout } = await run('sh', ['-c', command ?? ''], { env })
    expect(JSON.parse(stdout)).toMatchObject({ result: { content: [{ text: `Echo: ${message}` }] }, error: null })
    await call.getByRole('button', { name: 'CLI' }).click()
    await call.getByText(/^toolway call everything\.echo --args/).waitFor()
    await expectWhole(visitor)
  })

  test('the list does not move while a call is open; a button shows new calls', async () => {
    const visitor = await world.shared.at()
    const { page } = visitor
    await go(page, 'Calls')
    await page.getByRole('link', { name: 'everything.echo' }).first().click()
    const newest = () => page.locator('tbody tr').first().getByRole('link').getAttribute('href')
    const held = await newest()
    await world.client.callTool('everything__get-sum', { a: 2, b: 3 })
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
    const visitor = await world.shared.at()
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

  test('an elicitation and a sampling request are answered in the page', async () => {
    const visitor = await world.shared.at()
    const { page } = visitor
    await visitor.follow('/tools/everything__trigger-elicitation-request?view=try')
    await title(page, 'everything__trigger-elicitation-request')
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    const question = page.getByRole('region', { name: 'Question from the server' })
    await question.getByLabel('name', { exact: true }).fill('Ada Lovelace')
    await expectWhole(visitor)
    await question.getByRole('button', { name: 'Send answer' }).click()
    await page.getByTestId('outcome').getByText('Ada Lovelace').first().waitFor()

    await visitor.follow('/tools/everything__trigger-sampling-request?view=try')
    await page.getByLabel('prompt').fill('Say hello')
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await question.getByLabel('Answer').fill('Hello from a person')
    await question.getByRole('button', { name: 'Send answer' }).click()
    await page.getByTestId('outcome').getByText('Hello from a person').first().waitFor()
    expect(visitor.troubles).toEqual([])
  })

  test('resources are read, a template is filled in, and a prompt is completed', async () => {
    const visitor = await world.shared.at()
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
