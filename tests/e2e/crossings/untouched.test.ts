import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CallerKind, connectCaller, type Params, type StoryCaller } from '../../fixtures/callers.ts'
import { definitions, startMirror } from '../../fixtures/mirror-server.ts'
import { serverProgram } from '../../fixtures/programs.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

const program = serverProgram('mirror')
const kinds: CallerKind[] = ['v1', 'v2', 'modern']
const servers = ['old-http', 'new-http', 'old-stdio', 'new-stdio']
const open = new AsyncDisposableStack()
const callers = new Map<CallerKind, StoryCaller>()
let toolway: LocalToolway

beforeAll(async () => {
  const [older, newer] = await Promise.all([startMirror('legacy'), startMirror('modern')])
  open.use(older)
  open.use(newer)
  const stdio = (era: string) => ({ command: process.execPath, args: [program, era] })
  const mcpServers = {
    'old-http': { url: older.url },
    'new-http': { url: newer.url },
    'old-stdio': stdio('legacy'),
    'new-stdio': stdio('modern'),
  }
  toolway = open.use(await startToolway({ mcpServers }))
  for (const kind of kinds) callers.set(kind, open.use(await connectCaller(kind, toolway)))
})

afterAll(() => open.disposeAsync())

test('B2, G3: that its roots have changed reaches the servers that a client has to itself, and not those of another client', async () => {
  const join = async (name: string) =>
    open.use(await connectCaller('v1', toolway, { name, capabilities: { roots: { listChanged: true } } }))
  const ann = await join('ann')
  const bob = await join('bob')
  const roots = async (caller: StoryCaller) => {
    const { structuredContent } = await caller.call('old-stdio__state')
    return (structuredContent as { roots: number }).roots
  }
  expect([await roots(ann), await roots(bob)]).toEqual([0, 0])
  await ann.notify('notifications/roots/list_changed')
  await until(async () => (await roots(ann)) === 1, { what: 'the news to reach the server' })
  expect(await roots(bob)).toBe(0)
})

const crossings = kinds.flatMap((kind) => servers.map((server) => [kind, server] as const))

describe.each(crossings)('a %s client and the server %s', (kind, server) => {
  let caller: StoryCaller
  beforeAll(() => {
    caller = callers.get(kind) as StoryCaller
  })

  const modernServer = server.startsWith('new')
  const call = (tool: string, args?: Params, options?: Parameters<StoryCaller['call']>[2]) =>
    caller.call(`${server}__${tool}`, args, options)

  test.each([
    ['tools/list', 'tools', 'name', (name: string) => `${server}__${name}`],
    ['prompts/list', 'prompts', 'name', (name: string) => `${server}__${name}`],
    ['resources/list', 'resources', 'uri', (uri: string) => uri.replace('://', `://${server}/`)],
    [
      'resources/templates/list',
      'resourceTemplates',
      'uriTemplate',
      (uri: string) => uri.replace('://', `://${server}/`),
    ],
  ] as const)(
    "B2, F1: %s shows the server's own definitions: icons, annotations, schemas, unknown members",
    async (method, list, key, served) => {
      const items = (await caller.request(method))[list] as { _meta: Params }[]
      const own = items.filter(({ _meta }) => _meta['dev.toolway/server'] === server)
      const marks = { 'dev.toolway/source': 'forwarded', 'dev.toolway/server': server }
      const expected = (definitions[list] as readonly Params[]).map((definition) => ({
        ...definition,
        [key]: served(String(definition[key])),
        _meta: { ...(definition._meta as object | undefined), ...marks },
      }))
      expect(own).toEqual(expected)
    },
  )

  /** What has reached the server, without what belongs to its own hop. */
  const reached = ({ params }: { params: Params }) => {
    const { _meta, ...others } = params as { _meta?: Params }
    const meta = Object.entries(_meta ?? {}).filter(([key]) => !key.startsWith('io.modelcontextprotocol/'))
    return { ...others, _meta: Object.fromEntries(meta) }
  }

  test('B2, V1: arguments and `_meta` reach the server, unknown members do not, and structured content is returned', async () => {
    const args = { any: { deep: [1.5, 'grüß', null, { 'a b': true }] }, none: null }
    const meta = { traceparent: '00-1-2-01', 'example.com/kept': { a: [1] } }
    const params = { name: `${server}__mirror`, arguments: args, unheard: { of: 1 }, _meta: meta }
    const { structuredContent, ...others } = await caller.request('tools/call', params)
    expect(reached(structuredContent as { params: Params })).toEqual({
      name: 'mirror',
      arguments: args,
      // Toolway asks for progress itself, so that long calls stay alive (V4).
      _meta: { ...meta, progressToken: expect.any(Number) },
    })
    expect(others).toEqual({ content: [] })
  })

  test('B2: so it is with prompts and resources', async () => {
    const meta = { 'example.com/kept': 1 }
    const prompt = await caller.request('prompts/get', {
      name: `${server}__mirror`,
      arguments: { a: 'x' },
      _meta: meta,
    })
    const mirrored = (result: Params) => (result._meta as { mirrored: { params: Params } }).mirrored
    expect(reached(mirrored(prompt))).toEqual({ name: 'mirror', arguments: { a: 'x' }, _meta: meta })
    const uri = `mirror://${server}/a%20b`
    const resource = await caller.request('resources/read', { uri, unheard: 1, _meta: meta })
    expect(reached(mirrored(resource))).toEqual({ uri: 'mirror://a%20b', _meta: meta })
  })

  test('B2: each hop has its own envelope: the revision and client info of the caller are not forwarded', async () => {
    const { structuredContent } = await call('mirror')
    const { _meta = {} } = (structuredContent as { params: { _meta?: Params } }).params
    if (!modernServer) expect(_meta).toEqual({ progressToken: expect.any(Number) })
    else {
      expect(_meta).toMatchObject({
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'toolway' },
        'io.modelcontextprotocol/clientCapabilities': {},
      })
    }
  })

  test('F10, B2: a cancelled call ends at once, also at the server, and nothing stays pending', async () => {
    const state = async () => (await call('state')).structuredContent as { waiting: number; cancelled: number }
    const before = await state()
    const abort = new AbortController()
    const failure = expect(call('wait', {}, { signal: abort.signal })).rejects.toThrow()
    await until(async () => (await state()).waiting === before.waiting + 1, { what: 'the call to arrive' })
    abort.abort('changed my mind')
    await failure
    await until(async () => (await state()).cancelled === before.cancelled + 1, { what: 'the server to be told' })
    expect((await state()).waiting).toBe(before.waiting)
  })
})
