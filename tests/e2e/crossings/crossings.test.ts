import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startFixture } from '../../conformance/fixture/http.ts'
import { able, type CallerKind, connectCaller, type Params, type StoryCaller } from '../../fixtures/callers.ts'
import { serverProgram } from '../../fixtures/programs.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

const program = serverProgram('conformance')
const kinds: CallerKind[] = ['v1', 'modern']
const servers = ['old-http', 'new-http', 'old-stdio', 'new-stdio']
const open = new AsyncDisposableStack()
const callers = new Map<CallerKind, StoryCaller>()

/** The answers of somebody who is asked: the same to everybody, whatever way the question took. */
function answer(method: string, { message, messages }: Params): unknown {
  if (method === 'roots/list') return { roots: [{ uri: 'file:///home/ann', name: 'home' }] }
  if (method === 'sampling/createMessage') {
    const [first] = messages as { content: { text: string } }[]
    const text = `You said: ${[first?.content].flat()[0]?.text}`
    return { role: 'assistant', model: 'm', stopReason: 'endTurn', content: { type: 'text', text } }
  }
  const content = {
    name: 'Ann',
    username: 'ann',
    email: 'ann@example.com',
    context: 'a test',
    ok: true,
    color: 'green',
  }
  return message === 'Refuse this' ? { action: 'decline' } : { action: 'accept', content }
}

beforeAll(async () => {
  const [older, newer] = await Promise.all([startFixture({ eras: 'legacy' }), startFixture({ eras: 'modern' })])
  open.use(older)
  open.use(newer)
  const stdio = (era: string) => ({ command: process.execPath, args: [program, '--stdio', '--eras', era] })
  const toolway = open.use(
    await startToolway({
      history: {},
      mcpServers: {
        'old-http': { url: older.url },
        'new-http': { url: newer.url },
        'old-stdio': stdio('legacy'),
        'new-stdio': stdio('modern'),
      },
      discovery: { listDeadline: '20s' },
    }),
  )
  for (const kind of kinds) {
    const caller = open.use(await connectCaller(kind, toolway, { capabilities: able, answer }))
    await caller.request('tools/list')
    callers.set(kind, caller)
  }
})

afterAll(() => open.disposeAsync())

describe.each(kinds)('a %s client', (kind) => {
  test('F5, B2: learns the era and revision of each server', async () => {
    const { structuredContent } = (await callers.get(kind)?.call('list_servers', { include_metadata: true })) ?? {}
    const { servers: told } = structuredContent as { servers: { name: string; era?: string }[] }
    const eras = told.filter(({ name }) => servers.includes(name)).map(({ name, era }) => [name, era])
    expect(Object.fromEntries(eras)).toEqual({
      'old-http': 'legacy',
      'new-http': 'modern',
      'old-stdio': 'legacy',
      'new-stdio': 'modern',
    })
  })

  test('B2: gets the instructions of every server, under its name', () => {
    const instructions = callers.get(kind)?.instructions
    for (const server of servers) {
      expect(instructions).toContain(`## ${server}\nEverything here is for the conformance suite.`)
    }
  })
})

const crossings = kinds.flatMap((kind) => servers.map((server) => [kind, server] as const))

describe.each(crossings)('a %s client and the server %s', (kind, server) => {
  let caller: StoryCaller
  beforeAll(() => {
    caller = callers.get(kind) as StoryCaller
  })

  const call = (tool: string, args?: Params, options?: Parameters<StoryCaller['call']>[2]) =>
    caller.call(`${server}__${tool}`, args, options)
  const said = async (tool: string, args?: Params) =>
    ((await call(tool, args)).content as { text: string }[]).map(({ text }) => text).join(' ')
  const served = (uri: string) => uri.replace('test://', `test://${server}/`)
  const own = async (method: string, list: string) => {
    const items = (await caller.request(method))[list] as { _meta: Params; [field: string]: unknown }[]
    return items.filter(({ _meta }) => _meta['dev.toolway/server'] === server)
  }

  test('B2: tools answer with every kind of content', async () => {
    expect(await said('test_simple_text')).toBe('This is a simple text response for testing.')
    expect((await call('test_image_content')).content).toMatchObject([{ type: 'image', mimeType: 'image/png' }])
    expect((await call('test_audio_content')).content).toMatchObject([{ type: 'audio', mimeType: 'audio/wav' }])
    const { content } = await call('test_embedded_resource')
    expect(content).toMatchObject([{ type: 'resource', resource: { uri: served('test://embedded-resource') } }])
    expect(await call('test_error_handling')).toMatchObject({ isError: true })
  })

  test('B2: resources and templates are listed and read under served URIs', async () => {
    const resources = await own('resources/list', 'resources')
    expect(resources.map(({ uri }) => uri)).toContain(served('test://static-text'))
    const read = (uri: string) => caller.request('resources/read', { uri: served(uri) })
    const uri = served('test://static-text')
    expect(await read('test://static-text')).toMatchObject({ contents: [{ uri, mimeType: 'text/plain' }] })
    expect(await read('test://static-binary')).toMatchObject({ contents: [{ blob: expect.any(String) }] })
    const templates = await own('resources/templates/list', 'resourceTemplates')
    expect(templates.map(({ uriTemplate }) => uriTemplate)).toEqual([served('test://template/{id}/data')])
    const filled = 'test://template/grün 7/data'.replace(' ', '%20')
    expect(await read(filled)).toMatchObject({
      contents: [{ uri: served(filled), text: expect.stringContaining('7') }],
    })
  })

  test('T2: a resource that is not there is an error of the server about what the caller asked for', async () => {
    const uri = served('test://nowhere')
    const template = served('test://template/1/2/data')
    for (const missing of [uri, template]) {
      await expect(caller.request('resources/read', { uri: missing })).rejects.toMatchObject({ code: -32602 })
    }
  })

  test('B2: prompts are listed and filled in, and arguments completed', async () => {
    const prompts = await own('prompts/list', 'prompts')
    expect(prompts.map(({ name }) => name)).toContain(`${server}__test_prompt_with_arguments`)
    const name = `${server}__test_prompt_with_arguments`
    const { messages } = await caller.request('prompts/get', { name, arguments: { arg1: 'ä', arg2: '2' } })
    expect(messages).toMatchObject([{ role: 'user', content: { text: expect.stringContaining("arg1='ä'") } }])
    const embedding = `${server}__test_prompt_with_embedded_resource`
    const given = { name: embedding, arguments: { resourceUri: 'test://given' } }
    const [first] = (await caller.request('prompts/get', given)).messages as Params[]
    expect(first).toMatchObject({ content: { type: 'resource', resource: { uri: served('test://given') } } })
    const argument = { name: 'arg1', value: 'par' }
    const values = { completion: { values: ['paris', 'park', 'party'] } }
    for (const ref of [
      { type: 'ref/prompt', name },
      { type: 'ref/resource', uri: served('test://template/{id}/data') },
    ]) {
      expect(await caller.request('completion/complete', { ref, argument })).toMatchObject(values)
    }
  })

  test('B2: progress comes before the result, and only to a caller that asked for it', async () => {
    const from = caller.heard.length
    await call('test_tool_with_progress', {}, { progress: true })
    await call('test_tool_with_progress')
    const progress = caller.heard.slice(from).filter(({ method }) => method === 'notifications/progress')
    expect(progress.map(({ params }) => [params.progress, params.total])).toEqual([
      [0, 100],
      [50, 100],
      [100, 100],
    ])
  })

  test('B2: log messages come from the wanted level on', async () => {
    const logged = async (level: string) => {
      await caller.setLevel(level)
      const from = caller.told('notifications/message').length
      await call('test_logging_tool')
      const news = () => caller.told('notifications/message').slice(from)
      await until(() => news().some((message) => message.level === 'error'), { what: 'the last message' })
      return news().map((message) => message.level)
    }
    expect(await logged('debug')).toEqual(['debug', 'info', 'error'])
    expect(await logged('error')).toEqual(['error'])
    expect(await logged('info')).toEqual(['info', 'error'])
  })

  test('B2, G3: questions to the user, the model and about roots are answered, several at once and in turn', async () => {
    expect(await said('test_elicitation', { message: 'Who are you?' })).toContain('ann@example.com')
    expect(await said('test_elicitation', { message: 'Refuse this' })).toContain('action=decline')
    expect(await said('test_sampling', { prompt: 'grüß dich' })).toBe('LLM response: You said: grüß dich')
    expect(await said('test_input_required_result_list_roots')).toBe('home: file:///home/ann')
    expect(await said('test_input_required_result_multiple_inputs')).toContain('Ann, at 1 roots')
    expect(await said('test_input_required_result_multi_round')).toBe('Ann likes green')
    const { messages } = await caller.request('prompts/get', { name: `${server}__test_input_required_result_prompt` })
    expect(messages).toMatchObject([{ content: { text: 'Context: a test' } }])
  })

  test('B2, F4: updates of subscribed resources and changed lists are announced', async () => {
    const uri = served('test://watched-resource')
    await using _ = await caller.follow([uri])
    const told = (method: string) => caller.told(`notifications/${method}`)
    const updates = told('resources/updated').length
    await until(
      async () => {
        await call('test_trigger_resource_update')
        return told('resources/updated').length > updates
      },
      { what: 'a change of the resource' },
    )
    expect(told('resources/updated').at(-1)).toMatchObject({ uri })
    for (const [kind, list, field] of [
      ['tool', 'tools/list', 'tools'],
      ['prompt', 'prompts/list', 'prompts'],
    ] as const) {
      const names = async () => (await own(list, field)).map(({ name }) => name)
      for (const there of [true, false]) {
        const before = told(`${kind}s/list_changed`).length
        await call(`test_trigger_${kind}_change`)
        // A second notification of the change before this one may come late.
        const isListed = async () => (await names()).includes(`${server}__test_dynamic_${kind}`)
        await until(async () => told(`${kind}s/list_changed`).length > before && (await isListed()) === there, {
          what: `news of ${kind}s`,
        })
      }
    }
  })

  test('B2: arguments that a server wants in headers are there', async () => {
    const args = { region: 'Zürich ', priority: 3 }
    expect(await said('test_header_parameters', args)).toBe('region=Zürich , priority=3')
  })
})
