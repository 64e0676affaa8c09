import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../core/clock.ts'
import { silentLog } from '../../core/log.ts'
import { notificationBytes, requestBytes } from '../../wire/encode.ts'
import { ask, collector, isRunning } from './receiver.fixture.ts'
import { type StdioOptions, type StdioTransport, stdioTransport } from './stdio.ts'

const rogue = fileURLToPath(new URL('../../../tests/fixtures/rogue-stdio.ts', import.meta.url))
const everything = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'))
const never = new AbortController().signal
const left: StdioTransport[] = []

afterEach(async () => {
  await Promise.all(left.splice(0).map((transport) => transport[Symbol.asyncDispose]()))
})

const make = (options: Partial<StdioOptions> = {}): StdioTransport => {
  const transport = stdioTransport({
    name: 'rogue',
    command: process.execPath,
    args: [rogue],
    env: {},
    clock: systemClock,
    log: silentLog,
    closing: { endMs: 200, terminateMs: 200 },
    ...options,
  })
  left.push(transport)
  return transport
}

const started = async (options?: Partial<StdioOptions>) => {
  const transport = make(options)
  const heard = collector()
  await transport.open(heard, never)
  let id = 0
  const call = (name: string, args: object = {}) => ask(transport, heard, ++id, 'tools/call', { name, arguments: args })
  const start = (name: string, args: object = {}) =>
    transport.send({ body: requestBytes(++id, 'tools/call', bytesOf({ name, arguments: args })), exchange: id })
  return { transport, heard, pid: transport.pid as number, call, start }
}

const established = async (options?: Partial<StdioOptions>) => {
  const all = await started(options)
  await ask(all.transport, all.heard, 0, 'initialize', hello)
  all.transport.established('2025-11-25')
  return all
}

const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
const bytesOf = (value: object) => Buffer.from(JSON.stringify(value))
const textOf = async (call: ReturnType<typeof ask>) => (await call).content[0]?.text

/** The kernel tells nobody but its parent that a process has ended, so this has to look. */
const gone = (pid: number) => expect.poll(() => isRunning(pid), { timeout: 5_000 }).toBe(false)

describe('a well-behaved server', () => {
  test('T3: the official server answers a handshake, a list and a call over stdio', async () => {
    const { transport, heard } = await started({ args: [everything, 'stdio'] })
    const { protocolVersion } = await ask(transport, heard, 1, 'initialize', hello)
    transport.established(protocolVersion)
    await transport.send({ body: notificationBytes('notifications/initialized') })
    const { tools } = await ask(transport, heard, 2, 'tools/list')
    expect(tools.map(({ name }) => name)).toContain('echo')
    const echo = ask(transport, heard, 3, 'tools/call', { name: 'echo', arguments: { message: 'hello' } })
    expect(await textOf(echo)).toBe('Echo: hello')
    await transport[Symbol.asyncDispose]()
    expect(isRunning(transport.pid as number)).toBe(false)
    expect(heard.downs).toBe(0)
  })

  test('B6: the process sees its own variables and none of our secrets', async () => {
    process.env.SOME_SECRET = 'do not tell'
    const { call } = await started({ env: { MINE: 'yes' } })
    const seen = JSON.parse((await textOf(call('environment'))) as string)
    delete process.env.SOME_SECRET
    expect(seen).toMatchObject({ MINE: 'yes', PATH: process.env.PATH })
    expect(seen).not.toHaveProperty('SOME_SECRET')
  })

  test('security: a line break inside a message cannot become two messages', async () => {
    const { transport, heard } = await started()
    await transport.send({ body: Buffer.from('{"jsonrpc":"2.0",\n"id":1,\r\n"method":"ping"}'), exchange: 1 })
    expect(await heard.until((message) => message.kind === 'response')).toMatchObject({ id: 1 })
  })
})

describe('starting', () => {
  const opening = (options: Partial<StdioOptions>) => make(options).open(collector(), never)

  test.each([
    [
      'a command that does not exist',
      { command: 'no-such-command-here' },
      /"no-such-command-here" was not found.*mcpServers\.rogue\.command/,
    ],
    ['a file that is not executable', { command: rogue }, /may not be run/],
    [
      'a folder that does not exist',
      { cwd: '/no/such/folder' },
      /folder \/no\/such\/folder does not exist.*mcpServers\.rogue\.cwd/,
    ],
    ['an argument with a NUL', { args: ['a\0b'] }, /failed with/],
  ])('E1: %s is SERVER_UNAVAILABLE, and the sentence says what to do', async (_, options, sentence) => {
    const error = await opening({ ...options, env: { KEY: 'a-secret-value' } }).catch((thrown) => thrown)
    expect(error).toMatchObject({ code: 'SERVER_UNAVAILABLE', message: expect.stringMatching(sentence) })
    expect(error.message).not.toContain('a-secret-value')
  })

  test('G2: opening that is given up leaves no process', async () => {
    const transport = make()
    const controller = new AbortController()
    const opening = transport.open(collector(), controller.signal)
    controller.abort(new Error('too slow'))
    await expect(opening).rejects.toThrow('too slow')
    expect(isRunning(transport.pid as number)).toBe(false)
  })

  test('G2: disposing while it opens leaves no process', async () => {
    const transport = make()
    const opening = transport.open(collector(), never)
    await Promise.all([
      transport[Symbol.asyncDispose](),
      expect(opening).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' }),
    ])
    expect(isRunning(transport.pid as number)).toBe(false)
  })

  test('E1: a process that ends before the handshake is SERVER_UNAVAILABLE, with its last words', async () => {
    const { heard } = await started({ args: ['-e', 'console.error("no licence"); process.exit(7)'] })
    const error = await heard.down
    expect(error).toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringMatching(/exit code 7.*"no licence".*by hand/),
    })
  })

  test('E1: sending before it is opened is SERVER_UNAVAILABLE', async () => {
    await expect(make().send({ body: bytesOf({}) })).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  })
})

describe('a server that dies in mid-call', () => {
  test('F12: pending calls are OUTCOME_UNKNOWN, the sentence has code and last words, later ones are SERVER_UNAVAILABLE', async () => {
    const { transport, heard, pid, start } = await established({ env: { TOKEN: 'super-secret-token' } })
    await start('exit', { code: 3, words: 'disk full for super-secret-token' })
    const error = await heard.down
    expect(error).toMatchObject({ code: 'OUTCOME_UNKNOWN', details: { server: 'rogue' } })
    expect(error.message).toMatch(/^rogue ended \(exit code 3\)\. It last wrote: "disk full for \[redacted\]"\./)
    expect(transport.stderrTail()).toContain('disk full')
    await expect(start('echo')).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
    expect(isRunning(pid)).toBe(false)
    expect(heard.downs).toBe(1)
  })

  test('F12: a signal is named', async () => {
    const { heard, start } = await established()
    await start('crash')
    expect((await heard.down).message).toContain('ended (SIGKILL)')
  })

  test('F12: an answer written just before the end still arrives, whole', async () => {
    const { heard, call } = await established()
    expect(await textOf(call('exit-after-answer'))).toHaveLength(1024 * 1024)
    await heard.down
  })

  test('F12: half an answer is no answer', async () => {
    const { heard, start } = await established()
    await start('half-line-exit')
    await heard.down
    expect(heard.heard.filter(({ kind }) => kind === 'response')).toHaveLength(1)
  })

  test('F12: a grandchild that holds the output open does not delay the news', async () => {
    const { heard, call, start } = await established()
    const grandchild = Number(await textOf(call('grandchild', { detached: true })))
    await start('exit')
    expect((await heard.down).code).toBe('OUTCOME_UNKNOWN')
    expect(isRunning(grandchild)).toBe(true)
    process.kill(grandchild, 'SIGKILL')
  })

  test('security: what it left behind in its group is killed', async () => {
    const { heard, call, start } = await established()
    const grandchild = Number(await textOf(call('grandchild')))
    await start('exit')
    await heard.down
    await gone(grandchild)
  })
})

describe('a server that writes nonsense', () => {
  test.each([
    ['garbage', 'after the garbage'],
    ['half-line', 'in two halves'],
    ['invalid-utf8', 'a\ufffd\ufffd(b'],
    ['flood-stderr', 'flooded'],
  ])('security: %s survives', async (tool, text) => {
    const { call } = await established()
    expect(await textOf(call(tool))).toBe(text)
    expect(await textOf(call('echo', { text: 'still here' }))).toBe('still here')
  })

  test('security: stderr is kept in a bounded ring', async () => {
    const { transport, heard, call, start } = await established()
    await call('flood-stderr', { megabytes: 4 })
    await start('exit')
    await heard.down
    expect(transport.stderrTail()).toMatch(/the last line\nsomething went wrong\n$/)
    expect(transport.stderrTail().length).toBe(64 * 1024)
  })

  test('security: noise is logged at debug and never passed on', async () => {
    const lines: unknown[] = []
    const log = { ...silentLog, debug: (facts: object) => void lines.push((facts as { line?: string }).line) }
    const { heard, call } = await established({ log })
    await call('garbage')
    expect(lines).toEqual(expect.arrayContaining(['Listening for messages…', '[1,2]', '"text"']))
    expect(heard.heard.map(({ kind }) => kind)).toEqual(['response', 'invalid', 'response'])
  })

  test('security: a line of 100 MB closes the line, kills the process and costs bounded memory', async () => {
    const { heard, pid, start } = await established()
    const before = process.memoryUsage().rss
    await start('long-line', { megabytes: 100 })
    const error = await heard.down
    expect(error).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      message: expect.stringContaining('sent a line longer than 16 MiB'),
    })
    await gone(pid)
    expect(process.memoryUsage().rss - before).toBeLessThan(80 * 1024 * 1024)
  })
})

describe('a server that stops listening', () => {
  test('B7: sends settle when it dies while its input is backed up', async () => {
    const { transport, heard, pid, call } = await established()
    await call('stop-reading')
    const big = bytesOf({ jsonrpc: '2.0', id: 9, method: 'x', params: { text: 'x'.repeat(4 * 1024 * 1024) } })
    const sends = [1, 2, 3].map((exchange) => transport.send({ body: big, exchange }).catch(({ code }) => code))
    process.kill(pid, 'SIGKILL')
    const settled = await Promise.all(sends)
    // The first was being written, so it may have got through as far as anybody can tell; the others surely did not.
    expect(settled.slice(1)).toEqual(['SERVER_UNAVAILABLE', 'SERVER_UNAVAILABLE'])
    expect((await heard.down).code).toBe('OUTCOME_UNKNOWN')
  })

  test('B7: what waits to be written is bounded', async () => {
    const { transport, call } = await established()
    await call('stop-reading')
    const big = bytesOf({ jsonrpc: '2.0', method: 'x', params: { text: 'x'.repeat(10 * 1024 * 1024) } })
    const first = [transport.send({ body: big }), transport.send({ body: big })].map((send) => send.catch(() => {}))
    await expect(transport.send({ body: big })).rejects.toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringContaining('does not read'),
    })
    await transport[Symbol.asyncDispose]()
    await Promise.all(first)
  })

  test.each(['input', 'output'])('F12: a server that closes its %s is stopped', async (which) => {
    const { transport, heard, pid, start } = await established()
    await start(`close-${which}`)
    if (which === 'input') {
      await heard.until((message) => message.kind === 'response' && message.id === 1)
      await expect(start('echo')).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
    }
    expect((await heard.down).message).toContain(`closed its ${which} and was stopped`)
    await gone(pid)
    await transport[Symbol.asyncDispose]()
  })
})

describe('closing', () => {
  const closed = async (prepare: (all: Awaited<ReturnType<typeof established>>) => Promise<unknown>) => {
    const all = await established()
    const grandchild = Number(await textOf(all.call('grandchild')))
    await prepare(all)
    await all.transport[Symbol.asyncDispose]()
    expect(isRunning(all.pid)).toBe(false)
    await gone(grandchild)
    expect(all.heard.downs).toBe(0)
    await expect(all.start('echo')).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  }

  test('security: the end of its input is enough for a good server, and its grandchildren die too', async () => {
    await closed(async () => {})
  })

  test('security: a server that ignores the end of its input and SIGTERM is killed, with its grandchildren', async () => {
    await closed(({ call }) => call('ignore-end'))
  })

  test('security: a server that does not read is killed too', async () => {
    await closed(({ call }) => call('stop-reading'))
  })

  test('security: a shell between us and the server dies with it', async () => {
    const { transport, pid, call } = await established({
      command: 'sh',
      args: ['-c', `"${process.execPath}" "${rogue}"; true`],
    })
    const grandchild = Number(await textOf(call('grandchild')))
    await call('ignore-end')
    await transport[Symbol.asyncDispose]()
    await Promise.all([gone(pid), gone(grandchild)])
  })

  test('security: disposing twice, or of what was never opened, is fine', async () => {
    const { transport } = await established()
    await Promise.all([transport[Symbol.asyncDispose](), transport[Symbol.asyncDispose]()])
    await make()[Symbol.asyncDispose]()
  })

  test('security: no handle stays behind', async () => {
    const before = handles()
    const { transport } = await established()
    await transport[Symbol.asyncDispose]()
    await new Promise(setImmediate)
    expect(handles()).toEqual(before)
  })
})

const handles = () => process.getActiveResourcesInfo().filter((kind) => /Pipe|Process|Socket/.test(kind))
