import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { withFewFiles } from '../../../tests/fixtures/few-files.ts'
import { serverProgram } from '../../../tests/fixtures/programs.ts'
import { systemClock } from '../../core/clock.ts'
import { silentLog } from '../../core/log.ts'
import { notificationBytes } from '../../wire/message.ts'
import { ServerProcess } from './child-process.ts'
import { ask, collector, isRunning } from './receiver.fixture.ts'
import { bytesOf, established, gone, hello, make, never, rogue, started } from './stdio.fixture.ts'
import type { StdioTransportOptions } from './stdio.ts'

const everything = serverProgram('everything')
const logMessage = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'again' } }

describe('a well-behaved server', () => {
  test('T3: the official server answers a handshake, a list and a call over stdio', async () => {
    const { transport, heard } = await started({ args: [everything, 'stdio'] })
    const { protocolVersion } = await ask(transport, heard, 1, 'initialize', hello)
    transport.established(protocolVersion)
    await transport.send({ body: notificationBytes('notifications/initialized') })
    const { tools } = await ask(transport, heard, 2, 'tools/list')
    expect(tools.map(({ name }) => name)).toContain('echo')
    const echo = ask(transport, heard, 3, 'tools/call', { name: 'echo', arguments: { message: 'hello' } })
    expect((await echo).content[0]?.text).toBe('Echo: hello')
    await transport[Symbol.asyncDispose]()
    expect(isRunning(transport.pid as number)).toBe(false)
    expect(heard.downs).toBe(0)
  })

  test('B6: the process sees its own variables and none of our secrets', async () => {
    process.env.SOME_SECRET = 'do not tell'
    const { call } = await started({ env: { MINE: 'yes' } })
    const seen = JSON.parse((await call('environment')) as string)
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
  const opening = (options: Partial<StdioTransportOptions>) => make(options).open(collector(), never)

  test.each([
    [
      'a command that does not exist',
      { command: 'no-such-command-here' },
      /"no-such-command-here" was not found.*mcpServers\.rogue\.command/,
    ],
    ['a file that is not executable', { command: rogue }, /not executable/],
    [
      'a folder that does not exist',
      { cwd: '/no/such/folder' },
      /folder \/no\/such\/folder does not exist.*mcpServers\.rogue\.cwd/,
    ],
    ['an argument with a NUL', { args: ['a\0b'] }, /failed \(.*without null bytes/],
  ])('E1: %s is SERVER_UNAVAILABLE, and the sentence says what to do', async (_, options, sentence) => {
    const error = await opening({ ...options, env: { KEY: 'a-secret-value' } }).catch((thrown) => thrown)
    expect(error).toMatchObject({ code: 'SERVER_UNAVAILABLE', message: expect.stringMatching(sentence) })
    expect(error.message).not.toContain('a-secret-value')
  })

  test.skipIf(process.platform === 'win32')(
    'E1: too many open files are named as the cause, not the server',
    async () => {
      const printed = await withFewFiles(`
      import { ServerProcess } from ${JSON.stringify(new URL('child-process.ts', import.meta.url))}
      exhaust()
      const ends = await Promise.allSettled([ServerProcess.start({ name: 'x', command: 'cat', args: [], env: {} })])
      release()
      console.log(ends[0].reason.code, ends[0].reason.message)
    `)
      expect(printed).toMatch(/^SERVER_UNAVAILABLE .*ulimit -n/)
      expect(printed).not.toContain('mcpServers')
    },
  )

  test.skipIf(process.platform === 'win32')(
    'V18: on Windows, cmd.exe starts a command that is a batch file',
    async () => {
      await using place = await mkdtempDisposable(join(tmpdir(), 'toolway-cmd-'))
      const shell = join(place.path, 'cmd')
      await writeFile(shell, `#!/bin/sh\nprintf '%s\\n' "$@"\n`, { mode: 0o700 })
      const ours = Object.getOwnPropertyDescriptor(process, 'platform') as PropertyDescriptor
      Object.defineProperty(process, 'platform', { ...ours, value: 'win32' })
      const options = {
        name: 'x',
        command: 'npx.cmd',
        args: ['-y', 'a b'],
        env: { COMSPEC: shell },
        clock: systemClock,
      }
      const child = await ServerProcess.start(options).finally(() => Object.defineProperty(process, 'platform', ours))
      expect(await text(child.stdout)).toBe('/d\n/e:on\n/v:off\n/s\n/c\n""npx.cmd" "-y" "a b""\n')
    },
  )

  test('E1: a name for which PATH has only a folder is not found', async () => {
    await using place = await mkdtempDisposable(join(tmpdir(), 'toolway-path-'))
    await mkdir(join(place.path, 'no-such-command'))
    // The system reports EACCES, as it does for a folder in PATH that cannot be entered.
    const error = await opening({ command: 'no-such-command', env: { PATH: place.path } }).catch((thrown) => thrown)
    expect(error).toMatchObject({ message: expect.stringContaining('was not found'), cause: { code: 'ENOENT' } })
    await writeFile(join(place.path, 'plain'), '')
    await expect(opening({ command: 'plain', env: { PATH: place.path } })).rejects.toThrow('not executable')
  })

  test.each([
    ['a command that does not exist', { command: 'no-such-command-here', args: ['--key', 'a-secret-value'] }, 'ENOENT'],
    ['a NUL beside it', { args: ['a-secret-value\0'] }, 'ERR_INVALID_ARG_VALUE'],
    ['a NUL in a variable', { env: { KEY: 'a-secret-value\0' } }, 'ERR_INVALID_ARG_VALUE'],
  ])('B6: the cause of a failed start names no argument and no variable: %s', async (_, options, code) => {
    const error = await opening(options).catch((thrown) => thrown)
    expect(error.cause).toMatchObject({ code })
    expect(Object.keys(error.cause)).toEqual(['code'])
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('a-secret-value')
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

  test('E1: a process that ends before the handshake is SERVER_UNAVAILABLE, with its last stderr line', async () => {
    const { heard } = await started({ args: ['-e', 'console.error("no licence"); process.exit(7)'] })
    const error = await heard.down
    expect(error).toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringMatching(/exit code 7.*"no licence".*manually/),
    })
  })

  test('E1: sending before it is opened is SERVER_UNAVAILABLE', async () => {
    await expect(make().send({ body: bytesOf({}) })).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  })
})

describe('a server that writes nonsense', () => {
  test.each([
    ['garbage', 'after the garbage'],
    ['half-line', 'in two halves'],
    ['invalid-utf8', 'a\ufffd\ufffd(b'],
    ['flood', 'flooded'],
  ])('security: %s survives', async (tool, text) => {
    const { call } = await established()
    expect(await call(tool)).toBe(text)
    expect(await call('echo', { text: 'still here' })).toBe('still here')
  })

  test.each([
    ['output to stdout', { stream: 1, megabytes: 5 }],
    ['output to stderr', { stream: 2, megabytes: 5 }],
    ['notifications', { stream: 1, megabytes: 1, text: JSON.stringify(logMessage) }],
  ])('G2: more %s than a limit per second are not read before the next second', async (_, args) => {
    const clock = createManualClock()
    const { heard, call, start } = await established({ clock })
    const isResponse = ({ kind }: { kind: string }) => kind === 'response'
    await start('flood', args)
    await expect.poll(() => clock.pending).toBeGreaterThan(0)
    expect(heard.heard.filter(isResponse)).toHaveLength(1)
    clock.advance(1_000)
    await expect.poll(() => heard.heard.filter(isResponse).length).toBe(2)
    expect(await call('echo', { text: 'still here' })).toBe('still here')
  })

  test('security: noise is logged at debug and never passed on', async () => {
    const lines: unknown[] = []
    const log = { ...silentLog, debug: (facts: object) => void lines.push((facts as { line?: string }).line) }
    const { heard, call } = await established({ log })
    await call('garbage')
    expect(lines).toEqual(expect.arrayContaining(['Listening for messages…', '[1,2]', '"text"']))
    expect(heard.heard.map(({ kind }) => kind)).toEqual(['response', 'invalid', 'response'])
  })

  test.each(['first', 'last'])(
    'security, J3: a response of 40 MB fails its request alone, with its id %s',
    async (order) => {
      const { heard, call, start } = await established()
      await start('long-line', { megabytes: 40, order })
      expect(await heard.failure(1)).toMatchObject({
        code: 'OUTCOME_UNKNOWN',
        message: expect.stringContaining('more than 16 MiB'),
        details: { cause: { kind: 'large-message' } },
      })
      expect(await call('echo', { text: 'still here' })).toBe('still here')
      expect(heard.downs).toBe(0)
    },
  )

  test('security: a long line that is not a message is noise', async () => {
    const { heard, call, start } = await established()
    await start('long-line', { megabytes: 20, order: 'noise' })
    expect(await call('echo', { text: 'still here' })).toBe('still here')
    expect(heard.downs).toBe(0)
  })

  test.each([
    ['a message of 20 MB that responds to no request', { megabytes: 20, order: 'none' }],
    ['a response of 100 MB without an end', { megabytes: 100, ends: false }],
    ['100 MB of other output without an end', { megabytes: 100, order: 'noise', ends: false }],
  ])('security, G2, J3: %s closes the connection and kills the process', async (_, args) => {
    const { heard, pid, start } = await established()
    await start('long-line', args)
    expect(await heard.down).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      message: expect.stringContaining('sent a line longer than 16 MiB'),
    })
    await gone(pid)
  })
})
