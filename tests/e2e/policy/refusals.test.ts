import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { able, type CallerKind, connectCaller } from '../../fixtures/callers.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { rawRequest, rawSession } from '../../fixtures/raw-http.ts'
import { type RemoteServer, startEverything, stdioServers } from '../../fixtures/servers.ts'
import { startToolway } from '../../fixtures/toolway.ts'

type Answer = Record<string, unknown>

const refusalOf = (result: Answer) => {
  const meta = result._meta as Record<string, unknown> | undefined
  return meta?.['dev.toolway/error'] as { code: string; rule?: string; retryAfterMs?: number } | undefined
}
const textOf = (result: Answer) => (result.content as { text: string }[])[0]?.text ?? ''

/** A real server that several tests share, each through a gateway of its own. */
let everything: RemoteServer

beforeAll(async () => {
  everything = await startEverything('streamableHttp')
})
afterAll(() => everything[Symbol.asyncDispose]())

/** A real file server over a folder with something in it, and something beside it. */
async function files(more: Record<string, unknown>) {
  const folder = await temporaryFolder()
  const inside = join(folder.path, 'inside')
  await mkdir(inside)
  await writeFile(join(inside, 'note.txt'), 'hello')
  await writeFile(join(folder.path, 'secret.txt'), 'secret')
  await symlink(join(folder.path, 'secret.txt'), join(inside, 'link.txt'))
  // The server itself may read the whole folder: what is refused is refused by us.
  return { folder, inside, entry: { ...stdioServers.filesystem(folder.path), ...more } }
}

// At once, because each test has a gateway of its own and waits for its server.
describe.concurrent('a real file server', () => {
  test('J2: on a read-only server a write is refused before it is sent, and not listed; reads go on', async () => {
    await using open = new AsyncDisposableStack()
    const { folder, inside, entry } = await files({ readOnly: true, readTools: ['read_*', 'list_*'] })
    open.use(folder)
    const toolway = open.use(await startToolway({ mcpServers: { files: entry } }))
    const caller = open.use(await connectCaller('v2', toolway))
    const path = join(inside, 'note.txt')
    const written = await caller.call('files__write_file', { path, content: 'changed' })
    expect(refusalOf(written)).toMatchObject({ code: 'WRITE_NOT_ALLOWED', rule: 'mcpServers.files.readOnly' })
    expect(await readFile(path, 'utf8')).toBe('hello')
    expect(textOf(await caller.call('files__read_text_file', { path }))).toBe('hello')
    const { tools } = (await caller.request('tools/list')) as { tools: { name: string }[] }
    const names = tools.map(({ name }) => name)
    expect(names).toContain('files__read_text_file')
    expect(names).not.toContain('files__write_file')
  })

  test('F9: paths outside the roots are refused in every disguise, also through meta-tools', async () => {
    await using open = new AsyncDisposableStack()
    const { folder, inside, entry } = await files({})
    open.use(folder)
    const guarded = { ...entry, guards: [{ kind: 'path', arguments: ['path', 'paths[]'], roots: [inside] }] }
    const toolway = open.use(await startToolway({ mcpServers: { files: guarded } }))
    const caller = open.use(await connectCaller('modern', toolway))
    expect(textOf(await caller.call('files__read_text_file', { path: join(inside, 'note.txt') }))).toBe('hello')
    for (const path of [
      join(folder.path, 'secret.txt'),
      `${inside}/../secret.txt`,
      `${inside}/%2e%2e/secret.txt`,
      join(inside, 'link.txt'),
      `${inside}\0/../../secret.txt`,
      'note.txt',
    ]) {
      const direct = await caller.call('files__read_text_file', { path })
      const carried = await caller.call('execute_tool', { server: 'files', tool: 'read_text_file', args: { path } })
      for (const result of [direct, carried]) {
        expect(refusalOf(result)).toMatchObject({ code: 'INVALID_PATH', rule: 'mcpServers.files.guards[0]' })
        expect(JSON.stringify(result)).not.toContain('secret\\"')
      }
    }
    const some = await caller.call('files__read_multiple_files', {
      paths: [join(inside, 'note.txt'), join(folder.path, 'secret.txt')],
    })
    expect(refusalOf(some)?.code).toBe('INVALID_PATH')
  })

  test('F9: a path is guarded in every spelling of its name, also after names that confuse JSON.parse', async () => {
    await using open = new AsyncDisposableStack()
    const { folder, inside, entry } = await files({})
    open.use(folder)
    const guarded = { ...entry, guards: [{ kind: 'path', arguments: ['path'], roots: [inside] }] }
    const toolway = open.use(await startToolway({ mcpServers: { files: guarded } }))
    const session = await rawSession(toolway)
    const call = async (args: string) => {
      const params = `{"name":"files__read_text_file","arguments":${args}}`
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`
      return (await session.send(body)).text
    }
    const secret = JSON.stringify(join(folder.path, 'secret.txt'))
    for (const [before, name] of [
      [String.raw`"\\u00"`, String.raw`"\u0070ath"`],
      [String.raw`"p\\u0"`, String.raw`"p\u0061th"`],
      [String.raw`"pat\\"`, String.raw`"pat\u0068"`],
    ] as const) {
      const first = JSON.stringify(`before ${name}`)
      await call(`{${first}:1,${before}:1}`)
      expect(await call(`{${first}:1,${name}:${secret}}`), name).toContain('INVALID_PATH')
    }
  })

  test('F9: the URI of a resource is guarded like a path, read or followed, whatever form it has', async () => {
    const guards = [{ kind: 'path', arguments: ['path'], roots: ['/data'] }]
    await using toolway = await startToolway({ mcpServers: { everything: { url: everything.url, guards } } })
    const session = await rawSession(toolway)
    const { resources } = (await session.answer('resources/list', {})).result as { resources: { uri: string }[] }
    const { uri: own } = resources[0] as { uri: string }
    expect((await session.answer('resources/read', { uri: own })).result).toMatchObject({ contents: [{ uri: own }] })
    for (const uri of ['file://everything//etc/passwd', 'toolway://everything/file:///etc/passwd']) {
      for (const method of ['resources/read', 'resources/subscribe']) {
        expect((await session.answer(method, { uri })).error, `${method} ${uri}`).toMatchObject({
          data: { code: 'INVALID_PATH', rule: 'mcpServers.everything.guards[0]' },
        })
      }
    }
  })

  test('F9: undeclared arguments whose names suggest a path or URL are guarded', async () => {
    const guards = [{ kind: 'path', arguments: ['path'], roots: ['/data'] }]
    await using toolway = await startToolway({ mcpServers: { everything: { url: everything.url, guards } } })
    const session = await rawSession(toolway)
    const call = async (args: object) =>
      (await session.answer('tools/call', { name: 'everything__echo', arguments: { message: 'hi', ...args } })).result
    const fails = { isError: true, _meta: { 'dev.toolway/error': { code: 'INVALID_PATH' } } }
    for (const args of [
      { path: null },
      { PATH: 1 },
      { file: '/etc/passwd' },
      { 'path ': '/etc/passwd' },
      { uri: null },
    ]) {
      expect(await call(args), JSON.stringify(args)).toMatchObject(fails)
    }
    expect(await call({ file: '/data/a', note: null })).not.toHaveProperty('isError', true)
    for (const args of [{ path: '/etc/passwd' }, { file: '/etc/passwd' }]) {
      const { error } = await session.answer('prompts/get', { name: 'everything__simple-prompt', arguments: args })
      expect(error, JSON.stringify(args)).toMatchObject({ data: { code: 'INVALID_PATH' } })
    }
  })

  test('F9: arguments that do not fit the schema never reach the server', async () => {
    await using open = new AsyncDisposableStack()
    const { folder, inside, entry } = await files({})
    open.use(folder)
    const toolway = open.use(await startToolway({ mcpServers: { files: entry } }))
    const caller = open.use(await connectCaller('v1', toolway))
    const result = await caller.call('files__write_file', { path: join(inside, 'x'), content: 5 })
    expect(refusalOf(result)?.code).toBe('INVALID_ARGUMENTS')
    expect(textOf(result)).toMatch(/content/)
  })
})

describe.concurrent('F8: limits', () => {
  test('calls beyond a limit are refused with the time of the next attempt, for every spelling of the name', async () => {
    await using toolway = await startToolway({
      mcpServers: { everything: { url: everything.url } },
      limits: { tools: { 'everything.echo': 3 } },
    })
    const session = await rawSession(toolway)
    const call = async (name: string) => {
      const { result } = await session.answer('tools/call', { name, arguments: { message: 'x' } })
      return refusalOf(result as Answer)
    }
    expect(await call('everything__echo')).toBeUndefined()
    expect(await call('everything.echo')).toBeUndefined()
    expect(await call('everything::echo')).toBeUndefined()
    for (const name of ['everything__echo', 'everything/echo', 'toolway.everything.echo']) {
      const refusal = await call(name)
      expect(refusal).toMatchObject({ code: 'RATE_LIMITED', rule: 'limits.tools.everything.echo' })
      expect(refusal?.retryAfterMs).toBeGreaterThan(0)
      expect(refusal?.retryAfterMs).toBeLessThanOrEqual(60_000)
    }
  })
})

describe.concurrent('F7: some tools need an authenticated caller', () => {
  test('an anonymous one is refused, and not shown them', async () => {
    await using toolway = await startToolway({
      mcpServers: { everything: { url: everything.url } },
      policy: { requireAuth: ['everything.get-*'] },
      auth: { token: 'none' },
    })
    const anonymous = await rawSession(toolway)
    const { result } = await anonymous.answer('tools/call', { name: 'everything__get-env', arguments: {} })
    expect(refusalOf(result as Answer)).toMatchObject({ code: 'AUTH_REQUIRED', rule: 'policy.requireAuth[0]' })
    const list = await anonymous.ask('tools/list')
    expect(list).toContain('everything__echo')
    expect(list).not.toContain('everything__get-env')
  })

  test('B6: a wrong credential is refused even where none is needed', async () => {
    await using toolway = await startToolway({ auth: { token: 'none' } })
    const headers = { authorization: 'Bearer wrong', 'content-type': 'application/json' }
    const { status } = await rawRequest(toolway.url, { headers, body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' })
    expect(status).toBe(401)
  })
})

describe.concurrent("a tool that needs a person's yes", () => {
  const config = () => ({ mcpServers: { everything: { url: everything.url, approve: ['get-s*'] } } })

  test.each<CallerKind>(['v1', 'v2', 'modern'])('%s: runs after it, and only after it', async (kind) => {
    await using toolway = await startToolway(config())
    const asked: string[] = []
    let approve = true
    await using caller = await connectCaller(kind, toolway, {
      capabilities: able,
      answer: (method, { message }) => {
        // The server asks for roots when it likes.
        if (method === 'roots/list') return { roots: [] }
        asked.push(String(message))
        return { action: 'accept', content: { approve } }
      },
    })
    expect(textOf(await caller.call('everything__get-sum', { a: 1, b: 2 }))).toBe('The sum of 1 and 2 is 3.')
    approve = false
    const refused = await caller.call('everything__get-sum', { a: 1, b: 2 })
    expect(refusalOf(refused)).toMatchObject({ code: 'DENIED_BY_POLICY', rule: 'mcpServers.everything.approve[0]' })
    expect(asked).toHaveLength(2)
    expect(asked[0]).toContain('everything.get-sum with {"a":1,"b":2}')
    expect(textOf(await caller.call('everything__echo', { message: 'no need' }))).toBe('Echo: no need')
    expect(asked).toHaveLength(2)
  })

  test('V8: is refused at once if only the client may answer and it cannot be asked', async () => {
    await using toolway = await startToolway({ ...config(), approvals: { by: ['client'] } })
    await using caller = await connectCaller('v2', toolway)
    const refused = await caller.call('everything__get-sum', { a: 1, b: 2 })
    expect(refusalOf(refused)?.code).toBe('DENIED_BY_POLICY')
    expect(textOf(refused)).toContain('elicitation')
  })
})
