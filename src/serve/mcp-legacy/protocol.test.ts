import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../../../tests/fixtures/until.ts'
import { logLevels } from '../../core/call.ts'
import { events, initializeWith, openTestServer } from '../http/server.fixture.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})
const openServer = async () => open.use(await openTestServer())
const called = (name: string) => ({ id: 1, method: 'tools/call', params: { name } })

describe('B2: logging', () => {
  const levelsHeard = async (body: AsyncIterable<Buffer>) => {
    const seen = await Array.fromAsync(events(body))
    return { levels: seen.slice(0, -1).map(({ params }) => params.level), answer: seen.at(-1) }
  }

  test('a client that has set no level gets everything', async () => {
    const { session } = await openServer()
    const { send } = await session()
    const { levels, answer } = await levelsHeard((await send(called('log_all'))).body)
    expect(levels).toEqual([...logLevels, 'unheard-of'])
    expect(answer?.result.content[0].text).toBe('undefined')
  })

  test.each(logLevels)('after setLevel %s nothing below it is sent, and calls carry the level', async (level) => {
    const { session } = await openServer()
    const { send, ask } = await session()
    const other = await session()
    expect((await ask('logging/setLevel', { level })).result).toEqual({})
    const { levels, answer } = await levelsHeard((await send(called('log_all'))).body)
    expect(levels).toEqual([...logLevels.slice(logLevels.indexOf(level)), 'unheard-of'])
    expect(answer?.result.content[0].text).toBe(level)
    const unmoved = await levelsHeard((await other.send(called('log_all'))).body)
    expect(unmoved.levels).toHaveLength(logLevels.length + 1)
  })

  test.each([{ level: 'loud' }, { level: 3 }, {}, { level: 'INFO' }, { level: '__proto__' }])(
    'setLevel with %j is -32602 and changes nothing',
    async (params) => {
      const { session } = await openServer()
      const { ask, send } = await session()
      await ask('logging/setLevel', { level: 'alert' })
      const { error } = await ask('logging/setLevel', params)
      expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('emergency') })
      expect((await levelsHeard((await send(called('log_all'))).body)).levels).toEqual([
        'alert',
        'emergency',
        'unheard-of',
      ])
    },
  )
})

describe('B2: subscriptions', () => {
  const updated = (uri: string) => ({ method: 'notifications/resources/updated', params: { uri } })

  test('cause notifications on the stream of the session, with the URI that the client used', async () => {
    const { session, access } = await openServer()
    const { ask, stream, id } = await session()
    const uri = 'test://7?q=%41 "ü"'
    expect((await ask('resources/subscribe', { uri })).result).toEqual({})
    expect(access.followed).toMatchObject([{ uri, caller: { session: id, principal: 'token' } }])
    const { body } = await stream()
    access.update('test://static')
    access.update(uri)
    expect((await events(body).next()).value).toEqual({ jsonrpc: '2.0', ...updated(uri) })
  })

  test('of one session cause no notifications in another', async () => {
    const { session, access } = await openServer()
    const [one, two] = [await session(), await session()]
    await one.ask('resources/subscribe', { uri: 'test://1' })
    await two.ask('resources/subscribe', { uri: 'test://2' })
    const [first, second] = [events((await one.stream()).body), events((await two.stream()).body)]
    access.update('test://2')
    access.update('test://1')
    expect((await first.next()).value).toMatchObject(updated('test://1'))
    expect((await second.next()).value).toMatchObject(updated('test://2'))
  })

  test('that are repeated, also at the same time, count once; and so does unsubscribing', async () => {
    const { session, access } = await openServer()
    const { ask } = await session()
    const uri = 'test://static'
    await Promise.all([1, 2, 3].map((id) => ask('resources/subscribe', { uri }, id)))
    expect(access.followed).toHaveLength(1)
    for (let time = 0; time < 2; time++) expect((await ask('resources/unsubscribe', { uri })).result).toEqual({})
    expect(access.followed).toEqual([])
    await ask('resources/subscribe', { uri })
    expect(access.followed).toHaveLength(1)
  })

  test('that were removed are silent at once, and several updates before a stream opens are sent once', async () => {
    const { session, access } = await openServer()
    const { ask, stream } = await session()
    for (const uri of ['test://1', 'test://2']) await ask('resources/subscribe', { uri })
    for (let time = 0; time < 3; time++) access.update('test://1')
    await ask('resources/unsubscribe', { uri: 'test://2' })
    access.update('test://2')
    const heard = events((await stream()).body)
    access.change('tool')
    expect((await heard.next()).value).toMatchObject(updated('test://1'))
    expect((await heard.next()).value?.method).toBe('notifications/tools/list_changed')
  })

  test('of what cannot be found or followed are refused, and can be tried again', async () => {
    const { session, access } = await openServer()
    const { ask } = await session()
    for (let time = 0; time < 2; time++) {
      expect((await ask('resources/subscribe', { uri: 'other://x' })).error).toMatchObject({ code: -32002 })
      const { error } = await ask('resources/subscribe', { uri: 'test://refused' })
      expect(error?.data).toEqual({ code: 'DENIED_BY_POLICY' })
    }
    for (const params of [{}, { uri: 7 }, { uri: '' }, { uri: `test://${'x'.repeat(8_192)}` }]) {
      expect((await ask('resources/subscribe', params)).error?.code).toBe(-32602)
    }
    expect(access.followed).toEqual([])
  })

  test('are bounded', async () => {
    const { session } = await openServer()
    const { ask } = await session()
    // Some at a time, on connections that are used again.
    for (let id = 0; id < 1_000; ) {
      const some = Array.from({ length: 20 }, () => ask('resources/subscribe', { uri: `test://${id}` }, id++))
      await Promise.all(some)
    }
    expect((await ask('resources/subscribe', { uri: 'test://more' })).error?.data).toEqual({ code: 'OVERLOADED' })
    expect((await ask('resources/subscribe', { uri: 'test://7' })).result).toEqual({})
    await ask('resources/unsubscribe', { uri: 'test://7' })
    expect((await ask('resources/subscribe', { uri: 'test://more' })).result).toEqual({})
  })

  test('end with their session', async () => {
    const { session, access, raw } = await openServer()
    const { ask, headers } = await session()
    await ask('resources/subscribe', { uri: 'test://1' })
    await raw({ method: 'DELETE', headers })
    await until(() => access.followed.length === 0, { what: 'the subscription to go' })
  })
})

describe('G3: what a session means to servers', () => {
  test('they learn that roots have changed, and that the client has left', async () => {
    const { session, access, raw } = await openServer()
    const { send, headers, id } = await session({ roots: { listChanged: true } })
    await send({ method: 'notifications/roots/list_changed' })
    expect(access.informed).toMatchObject([[{ session: id }, 'notifications/roots/list_changed']])
    await raw({ method: 'DELETE', headers })
    expect(access.gone).toMatchObject([{ session: id, capabilities: { roots: { listChanged: true } } }])
  })
})

describe('B2: the response to initialize', () => {
  test("has the capabilities and instructions of servers beside Toolway's own, which they cannot change", async () => {
    const { raw, access } = await openServer()
    access.offered = {
      capabilities: { tasks: { list: {} }, experimental: { x: 1 }, tools: { listChanged: false } },
      instructions: '## files\nRead first.',
    }
    const { json } = await raw({ body: initializeWith() })
    expect(json?.result.capabilities).toEqual({
      tools: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
      prompts: { listChanged: true },
      completions: {},
      logging: {},
      tasks: { list: {} },
      experimental: { x: 1 },
    })
    expect(json?.result.instructions).toBe('Use the tools.\n\n## files\nRead first.')
  })
})

describe('B2: results of the stateless era', () => {
  test('lose its envelope and nothing else', async () => {
    const { session } = await openServer()
    const { send } = await session()
    const { body } = await send(called('modern'))
    expect(await body.text()).toBe('{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"m"}]}}')
  })
})

describe('E1: keys that occur twice', () => {
  test.each([
    '{"name":"echo","name":"wait"}',
    '{"name":"echo","arguments":{"a":1,"a":2}}',
    '{"name":"echo","arguments":{"deep":[{"a":1,"\\u0061":2}]}}',
    '{"name":"echo","_meta":{"x":1,"x":1}}',
  ])('are refused at any depth: %s', async (params) => {
    const { session, raw, access } = await openServer()
    const { headers } = await session()
    const body = `{"jsonrpc":"2.0","id":"i","method":"tools/call","params":${params}}`
    const { status, json } = await raw({ body, headers })
    expect([status, json?.id, json?.error?.code]).toEqual([400, 'i', -32602])
    expect(access.calls).toEqual([])
  })
})
