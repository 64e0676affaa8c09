import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ModelServer, modelServer, type Reply } from '../../../src/chat/models/server.fixture.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { asking, originOf } from '../admin/people.ts'
import { complete } from './completions.ts'
import { agentModel, answer, question, stagedModel } from './model.ts'

const open = new AsyncDisposableStack()

/** Two real servers behind a gateway, whose model is a script. */
async function story(reply: Reply, mode: 'staged' | 'agent') {
  const model = open.use(await modelServer(reply))
  const toolway = open.use(
    await startToolway({
      mcpServers: { weather: stdioServers.weather(), arithmetic: stdioServers.arithmetic() },
      native: { tools: [] },
      models: { local: { kind: 'openai', baseUrl: model.baseUrl, model: 'scripted', apiKey: 'sk-of-the-story' } },
      chat: { model: 'local', mode },
    }),
  )
  return { model, toolway }
}

let staged: Awaited<ReturnType<typeof story>>
let agent: Awaited<ReturnType<typeof story>>

beforeAll(async () => {
  ;[staged, agent] = await Promise.all([story(stagedModel, 'staged'), story(agentModel, 'agent')])
})
afterAll(() => open.disposeAsync())

const messages = [{ role: 'user', content: question }]
/** What the model was asked in the last answer, which took it three requests. */
const bodies = (model: ModelServer) => model.asked.slice(-3).map(({ body }) => body)
const call = (id: string, name: string, args: object) => ({
  id,
  type: 'function',
  function: { name, arguments: JSON.stringify(args) },
})
const weather = call('w', 'weather__temperature', { city: 'Rome' })
const product = call('m', 'arithmetic__multiply', { a: 21, b: 3 })
const weatherResult = { role: 'tool', tool_call_id: 'w', content: 'It is 21 degrees in Rome.' }
const productResult = { role: 'tool', tool_call_id: 'm', content: '{"result":63}' }
const user = { role: 'user', content: question }
const system = (beginning: string) => ({ role: 'system', content: expect.stringMatching(beginning) })
const named = (...names: readonly string[]) => names.map((name) => ({ type: 'function', function: { name } }))

describe.each([{ stream: false }, { stream: true }])(
  'the weather and arithmetic, with stream $stream',
  ({ stream }) => {
    test('S3, S6: the staged loop: one message in, one answer out, the exact requests of each stage', async () => {
      const told = staged
      const completed = await complete(told.toolway, { stream, messages })
      expect(completed).toEqual({
        text: answer,
        finish: 'stop',
        usage: { prompt_tokens: 21, completion_tokens: 9, total_tokens: 30 },
        ran: ['weather__temperature', 'arithmetic__multiply'],
        notes: [],
        pieces: expect.any(Number),
        model: 'local',
      })
      expect(completed.pieces > 1).toBe(stream)
      const common = { model: 'scripted', stream: false }
      expect(bodies(told.model)).toMatchObject([
        {
          ...common,
          messages: [
            system('^You choose the tools'),
            {
              role: 'user',
              content: `Message:\n${question}\n\nTools:\n- arithmetic__add(a, b): Can add two numbers.\n- arithmetic__multiply(a, b): Can multiply two numbers.\n- weather__temperature(city): Tells the temperature in a city, in degrees Celsius.`,
            },
          ],
          response_format: {
            type: 'json_schema',
            json_schema: {
              name: 'tool_selection',
              strict: true,
              schema: {
                properties: {
                  selected_tools: {
                    items: { enum: ['arithmetic__add', 'arithmetic__multiply', 'weather__temperature'] },
                  },
                },
                required: ['reasoning', 'selected_tools'],
              },
            },
          },
        },
        {
          ...common,
          messages: [system('^Call the tools'), user],
          tools: named('arithmetic__multiply', 'weather__temperature'),
          tool_choice: 'auto',
        },
        {
          ...common,
          stream,
          messages: [
            system('^Answer the user with the results'),
            user,
            { role: 'assistant', content: null, tool_calls: [weather, product] },
            weatherResult,
            productResult,
          ],
          response_format: { type: 'json_schema', json_schema: { name: 'final_response', strict: true } },
        },
      ])
      expect(bodies(told.model).filter((body) => 'tools' in body && 'response_format' in body)).toEqual([])
      expect(told.model.asked[0]?.headers.authorization).toBe('Bearer sk-of-the-story')
      expect(JSON.stringify(told.toolway.log.lines)).not.toContain('sk-of-the-story')
    })

    test('J5, S6: the agent loop: each step sees what the one before it has found', async () => {
      const told = agent
      const completed = await complete(told.toolway, { stream, messages })
      expect(completed).toMatchObject({
        text: answer,
        finish: 'stop',
        ran: ['weather__temperature', 'arithmetic__multiply'],
        notes: [],
      })
      expect(completed.pieces > 1).toBe(stream)
      const opening = [system('Call tools where they help'), user]
      const first = [...opening, { role: 'assistant', content: null, tool_calls: [weather] }, weatherResult]
      const second = [...first, { role: 'assistant', content: null, tool_calls: [product] }, productResult]
      const tools = named('arithmetic__add', 'arithmetic__multiply', 'weather__temperature')
      expect(bodies(told.model)).toMatchObject(
        [opening, first, second].map((said) => ({
          model: 'scripted',
          stream,
          tools,
          tool_choice: 'auto',
          messages: said,
        })),
      )
    })
  },
)

test('F11, S3: the calls of a chat are audited like any other, joined by the chat that they belong to', async () => {
  const told = agent
  await complete(told.toolway, { stream: false, messages })
  const { rows } = (await asking(originOf(told.toolway), told.toolway.token)('audit?operation=call_tool&limit=2')).json
  expect(rows).toHaveLength(2)
  expect(new Set(rows.map(({ server, tool }: Record<string, string>) => `${server}.${tool}`))).toEqual(
    new Set(['weather.temperature', 'arithmetic.multiply']),
  )
  const parents = new Set(rows.map(({ parent }: Record<string, string>) => parent))
  expect([parents.size, [...parents][0]]).toEqual([1, expect.any(String)])
})
