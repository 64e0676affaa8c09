import { fileURLToPath } from 'node:url'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ModelServer, modelServer } from '../../../src/chat/models/server.fixture.ts'
import { agentModel, answer, halfAnswer, question } from '../../e2e/chat/model.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { visit } from '../visit.ts'
import { expectWhole } from './pages.ts'

const server = (name: string) => ({
  command: process.execPath,
  args: [fileURLToPath(new URL(`../../fixtures/${name}-server.ts`, import.meta.url))],
})

inBrowser('S6, V11: chat with real servers and a scripted model', () => {
  const open = new AsyncDisposableStack()
  let browser: Browser
  let model: ModelServer
  let toolway: LocalToolway
  beforeAll(async () => {
    browser = open.adopt(await openBrowser(), (one) => one.close())
    model = open.use(await modelServer(agentModel))
    toolway = open.use(
      await startToolway({
        mcpServers: { weather: { ...server('weather'), capture: true }, arithmetic: server('arithmetic') },
        native: { tools: [] },
        models: { local: { kind: 'openai', baseUrl: model.baseUrl, model: 'scripted', apiKey: 'sk-of-the-story' } },
        chat: { model: 'local', mode: 'agent' },
      }),
    )
    await toolway.gateway.refresh()
  })
  afterAll(() => open.disposeAsync())

  test('a question is answered with tools; each of them leads to its call, and the chat to all its calls', async () => {
    await using visitor = await visit(browser, new URL(toolway.url).origin, toolway.token, { at: '/chat' })
    const { page } = visitor
    await page.getByLabel('Message').fill(question)
    await page.keyboard.press('Enter')
    const turn = page.locator('.turn').first()
    await turn.getByText(answer).waitFor()
    await turn.getByText('Answered', { exact: true }).waitFor()
    const tools = turn.getByRole('list', { name: 'Tools' }).locator('summary')
    expect(await tools.allTextContents()).toEqual([
      expect.stringMatching(/answered.*weather__temperature.*ms/),
      expect.stringMatching(/answered.*arithmetic__multiply.*ms/),
    ])
    await turn.getByText('30 tokens', { exact: true }).waitFor()
    await turn.getByText(/^\d+ steps$/).click()
    const steps = turn.getByRole('list', { name: 'Steps' }).getByRole('listitem')
    for (const step of await steps.allTextContents()) expect(step).toMatch(/\d (ms|s|µs)/)
    expect((await steps.allTextContents()).join()).toMatch(/tokens/)
    await expectWhole(visitor)

    await turn.getByRole('link', { name: 'Call of weather__temperature' }).click()
    const call = page.getByRole('complementary', { name: 'Call' })
    await call.getByText('It is 21 degrees in Rome.').first().waitFor()
    await call.getByRole('link', { name: /^chat-/ }).click()
    await page.getByText(/^caused by chat-/).waitFor()
    await expect
      .poll(() => page.getByRole('region', { name: 'Calls', exact: true }).locator('tbody tr').count())
      .toBe(2)

    // The conversation is still there after a reload, and its answer can be asked for again with fewer tools.
    await visitor.follow('/chat')
    await page.reload()
    await page.getByText('Conversations').click()
    await page.getByRole('list', { name: 'Conversations' }).getByRole('button').first().click()
    await turn.getByText(answer).waitFor()
    await page.getByRole('button', { name: 'Tools: all' }).click()
    await page.getByRole('dialog').getByRole('checkbox', { name: 'arithmetic', exact: true }).uncheck()
    await page.getByRole('dialog').getByRole('button', { name: 'Done' }).click()
    const asked = model.asked.length
    await turn.getByRole('button', { name: 'Retry' }).click()
    await expect.poll(() => model.asked.length).toBeGreaterThan(asked)
    const offered = model.asked[asked]?.body.tools?.map(({ function: { name } }) => name)
    expect(offered).toEqual(['weather__temperature'])
    await turn.getByText(halfAnswer).waitFor()
    expect(visitor.troubles).toEqual([])
  })
})
