import { expect, test } from 'vitest'
import { calls, modelServer, type Reply, says } from '../../../src/chat/models/server.fixture.ts'
import { complete } from '../chat/completions.ts'
import { callerOf, startDesign } from './start.ts'

const messages = [{ role: 'user', content: 'How warm is it in Rome, and what is 2 times 3?' }]
const [user] = messages
const selection = { reasoning: 'A temperature, and a product.', selected_tools: ['temperature', 'multiply'] }
const callsOf = (all: Readonly<Record<string, object>>) =>
  calls(...Object.entries(all).map(([name, args], index) => ({ id: `call_${index}`, name, arguments: args })))

/** A model server that answers its requests with these replies, and its section of the configuration. */
const modelOf = async (open: AsyncDisposableStack, ...replies: readonly Reply[]) => {
  const model = open.use(await modelServer(...replies))
  return { model, models: { local: { kind: 'openai', baseUrl: model.baseUrl, model: 'model_name', apiKey: 'none' } } }
}

test('S3, S5, F17: a chat in stages sends what its templates say, and asks for calls once more', async () => {
  await using open = new AsyncDisposableStack()
  const { model, models } = await modelOf(
    open,
    says(JSON.stringify(selection)),
    says('I will look it up.'),
    callsOf({ temperature: { city: 'Rome' }, multiply: { a: 2, b: 3 } }),
    says('{"content": "21 degrees, and 6."}'),
  )
  const design = open.use(await startDesign({ 'chat.yaml': 'chat.yaml' }, { models }))
  const caller = await callerOf(design)
  expect((await caller.tools()).map(({ name }) => name)).toEqual(expect.arrayContaining(['temperature', 'multiply']))
  const { text, notes, ran } = await complete(design, { stream: false, messages })
  expect({ text, notes, ran }).toEqual({ text: '21 degrees, and 6.', notes: [], ran: ['temperature', 'multiply'] })

  const [select, call, again, interpret] = model.asked.map(({ body: { stream: _, ...body } }) => body)
  expect(model.asked).toHaveLength(4)
  const prompt = String(select?.messages[1]?.content)
  const [, listed = ''] = /^Request: How warm .*\?\n\nTools: (.*)\n\nWhich of them help\? /.exec(prompt) ?? []
  const tools: { name: string; description: string; inputSchema: object }[] = JSON.parse(listed)
  const names = tools.map(({ name }) => name)
  // Tools that need a model of their kind are listed to clients, but no chat gets them without one.
  expect(names).toEqual(['add', 'fetch', 'hash', 'multiply', 'temperature', 'time'])
  expect(select).toEqual({
    model: 'model_name',
    messages: [
      { role: 'system', content: 'Find out which tools help with a request. Give a reason and the names of tools.' },
      { role: 'user', content: prompt },
    ],
    response_format: { type: 'json_object' },
  })
  const asked = [{ role: 'user', content: `Write the calls for: ${user?.content}` }]
  expect(call).toEqual({
    model: 'model_name',
    messages: asked,
    tools: tools
      .filter(({ name }) => selection.selected_tools.includes(name))
      .map(({ inputSchema: parameters, ...tool }) => ({ type: 'function', function: { ...tool, parameters } })),
    tool_choice: 'auto',
  })
  expect(again).toMatchObject({
    ...call,
    messages: [...asked, { role: 'assistant', content: 'I will look it up.' }, {}],
  })
  const made = (id: string, name: string, args: object) => ({
    id,
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  })
  expect(interpret).toEqual({
    model: 'model_name',
    messages: [
      user,
      {
        role: 'assistant',
        content: null,
        tool_calls: [made('call_0', 'temperature', { city: 'Rome' }), made('call_1', 'multiply', { a: 2, b: 3 })],
      },
      { role: 'tool', tool_call_id: 'call_0', content: 'It is 21 degrees in Rome.' },
      { role: 'tool', tool_call_id: 'call_1', content: '{"result":6}' },
    ],
    response_format: { type: 'json_object' },
  })
})

test('J5, J1, J2, J4: a job appends the results of its reads, refused writes, sinks and unknown tools, and goes on', async () => {
  await using open = new AsyncDisposableStack()
  const { model, models } = await modelOf(
    open,
    callsOf({
      'tickets.get_ticket': { id: '7' },
      'tickets.close_ticket': { id: '7' },
      'sink.reports': { content: 'Closed.' },
      'native.hash': { data: 'abc', algorithm: 'md5' },
      'nowhere.get_ticket': {},
    }),
    says('Done.'),
  )
  const sinks = { reports: { kind: 'file', path: './reports' } }
  const design = open.use(
    await startDesign({ 'executor.yaml': 'executor.yaml' }, { models, sinks, chat: { mode: 'agent' } }),
  )
  expect((await complete(design, { stream: false, messages })).text).toBe('Done.')
  const results = model.asked[1]?.body.messages.filter(({ role }) => role === 'tool').map(({ content }) => content)
  expect(results).toEqual([
    'get_ticket 1',
    expect.stringMatching(/^Error: Write not allowed.*readTools\.$/),
    expect.stringContaining('"sink":"reports"'),
    '900150983cd24fb0d6963f7d28e17f72',
    expect.stringContaining('There is no tool "nowhere.get_ticket"'),
  ])
  expect(design.tickets.called).toEqual(['get_ticket'])
})
