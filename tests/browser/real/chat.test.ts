import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type Asked,
  type ModelServer,
  modelServer,
  type Reply,
  says,
  stalls,
} from '../../../src/chat/models/server.fixture.ts'
import { agentModel, answer, halfAnswer, question } from '../../e2e/chat/model.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { openBrowser } from '../chromium.ts'
import { inBrowser } from '../in-browser.ts'
import { type SharedVisit, shareVisit, visit } from '../visit.ts'
import { expectWhole } from './pages.ts'

/** A PNG of one pixel. */
const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

const markdown = `| City | Degrees |
| --- | ---: |
| Rome | 21 |
| Oslo | 4 |

\`\`\`sh
toolway call weather.temperature city=Rome
\`\`\`
`

/** What the user wrote last. */
const lastMessage = ({ body }: Asked) => body.messages.findLast(({ role }) => role === 'user')?.content

/** Answers with Markdown, stops in the middle of a long answer, and describes images; otherwise uses tools. */
const scripted: Reply = (asked, response) => {
  const said = JSON.stringify(lastMessage(asked))
  if (said.includes('Describe')) return says('A green pixel.')(asked, response)
  if (said.includes('long')) return stalls('Once upon ', 'a time')(asked, response)
  if (said.includes('table')) return says(markdown)(asked, response)
  return agentModel(asked, response)
}

inBrowser('S6, V11: chat with real servers and a scripted model', () => {
  const open = new AsyncDisposableStack()
  let shared: SharedVisit
  let model: ModelServer
  let toolway: LocalToolway
  beforeAll(async () => {
    const browser = open.adopt(await openBrowser(), (one) => one.close())
    model = open.use(await modelServer(scripted))
    toolway = open.use(
      await startToolway({
        history: {},
        mcpServers: { weather: { ...stdioServers.weather(), capture: true }, arithmetic: stdioServers.arithmetic() },
        native: { tools: [] },
        models: {
          local: { kind: 'openai', baseUrl: model.baseUrl, model: 'scripted', apiKey: 'sk-of-the-story', vision: true },
        },
        chat: { model: 'local', mode: 'agent' },
      }),
    )
    await toolway.gateway.refresh()
    const { origin } = new URL(toolway.url)
    shared = shareVisit(() => visit(browser, origin, toolway.token, { at: '/chat' }))
  })
  afterAll(() => open.disposeAsync())

  test('a question is answered with tools; each of them leads to its call, and the chat to all its calls', async () => {
    const visitor = await shared.at('/chat')
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

  test('an image reaches the model; an answer is stopped, its message edited and sent again; tables and code are shown', async () => {
    const visitor = await shared.at('/chat')
    const { page, context } = visitor
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.getByRole('button', { name: 'New chat' }).click()
    const turn = (number: number) => page.locator('.turn').nth(number)
    const send = async (text: string) => {
      const number = model.asked.length + 1
      await page.getByLabel('Message', { exact: true }).fill(text)
      await page.keyboard.press('Enter')
      return await model.request(number)
    }

    await page
      .getByLabel('Images', { exact: true })
      .setInputFiles({ name: 'pixel.png', mimeType: 'image/png', buffer: pixel })
    await page.getByRole('list', { name: 'Attached images' }).getByText('pixel.png').waitFor()
    const url = `data:image/png;base64,${pixel.toString('base64')}`
    expect(lastMessage(await send('Describe this'))).toEqual([
      { type: 'text', text: 'Describe this' },
      expect.objectContaining({ type: 'image_url', image_url: expect.objectContaining({ url }) }),
    ])
    await turn(0).getByText('A green pixel.').waitFor()
    await turn(0).getByRole('img', { name: 'pixel.png' }).waitFor()

    // The model's server would never end this answer.
    const long = await send('Tell me a long story')
    await turn(1).getByText('Once upon a time').waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await turn(1).getByText('Stopped', { exact: true }).waitFor()
    await long.abandoned
    await turn(1).getByText('Once upon a time').waitFor()

    await turn(1).getByRole('button', { name: 'Edit', exact: true }).click()
    await page.getByLabel('Edit the message').fill('Give me a table')
    const asked = model.asked.length
    await page.keyboard.press('Enter')
    const again = await model.request(asked + 1)
    expect(lastMessage(again)).toBe('Give me a table')
    expect(JSON.stringify(again.body.messages)).toContain('A green pixel.')
    expect(JSON.stringify(again.body.messages)).not.toContain('long story')
    await turn(1).getByText('Answered', { exact: true }).waitFor()
    await expect.poll(() => page.locator('.turn').count()).toBe(2)
    const table = turn(1).getByRole('table')
    expect(await table.getByRole('columnheader').allTextContents()).toEqual(['City', 'Degrees'])
    expect(await table.getByRole('cell').allTextContents()).toEqual(['Rome', '21', 'Oslo', '4'])
    await turn(1).getByRole('button', { name: 'Copy: Code (sh)' }).click()
    await expect
      .poll(() => page.evaluate('navigator.clipboard.readText()'))
      .toBe('toolway call weather.temperature city=Rome')
    await expectWhole(visitor)
  })
})
