import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { json, result } from '../../../tests/fixtures/rogue-http.ts'
import { until } from '../../../tests/fixtures/until.ts'
import type { ServerConfig } from '../../config/schema.ts'
import { systemClock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import { silentLog } from '../../core/log.ts'
import { ServerFindings } from '../health/health.ts'
import { onPost, quick, serving } from '../transports/http.fixture.ts'
import type { LimitExceeded } from '../transports/transport-errors.ts'
import { createConnector } from './connect.ts'

test('B6: a secret that a process writes in another spelling reaches neither the error nor the log', async () => {
  const encoded = Buffer.from('a-secret-value').toString('base64')
  const log = createKeptLog()
  const connect = createConnector({
    name: 'files',
    config: {
      transport: 'stdio',
      command: process.execPath,
      args: ['-e', `console.error('bad key ${encoded}'); process.exit(1)`],
      env: { KEY: 'a-secret-value' },
    } as unknown as ServerConfig,
    identity: { name: 'toolway', version: '1' },
    host: { redact: (text) => text.replaceAll(encoded, '[hidden]') },
    clock: systemClock,
    log,
  })
  const opening = connect({ capabilities: {}, owned: false }, new AbortController().signal)
  const error = await opening.catch((thrown) => thrown)
  expect(error.message).toContain('It last wrote: "bad key [hidden]".')
  expect(JSON.stringify(log.lines)).toContain('bad key [hidden]')
  expect(JSON.stringify(log.lines)).not.toContain(encoded)
})

/** Connects to a process that runs this code, on a clock that skips ten seconds as soon as `written` is in the log. */
async function startFailure(code: string, written: string, startTimeout?: number) {
  const log = createKeptLog()
  const clock = createManualClock()
  const config = { transport: 'stdio', command: process.execPath, args: ['-e', code], env: {}, startTimeout }
  const identity = { name: 'toolway', version: '1' }
  const connect = createConnector({ name: 'files', config: config as unknown as ServerConfig, identity, clock, log })
  const limit = new AbortController()
  const findings = new ServerFindings('files', log)
  const exceeded = (limit: LimitExceeded) => void findings.exceededWithoutCall(limit)
  const opening = connect({ capabilities: {}, owned: false, exceeded }, limit.signal).catch((error) => error)
  await until(() => JSON.stringify(log.lines).includes(written), { what: 'output of the process' })
  const found = findings.of(unlisted, {})
  await clock.pass(10_000)
  limit.abort(new ToolwayError('SERVER_UNAVAILABLE', 'files did not finish its handshake.'))
  const { code: kind, message } = (await opening) as ToolwayError
  return { kind, message, found, warnings: log.lines.filter(({ level }) => level === 'warn') }
}

const unlisted = { descriptors: undefined, failure: undefined, missing: [] }

test('V2, E1: a server that writes no messages to stdout is named with its first line, and started once', async () => {
  const code = `console.log('Listening on port \u001b[1m80'); console.log('and on'); process.stdin.on('end', () => process.exit()).resume()`
  const { kind, message, found, warnings } = await startFailure(code, 'and on')
  // Found before any time has passed.
  expect(found).toEqual([{ kind: 'stray-output', message: expect.stringContaining('"Listening on port 80"') }])
  expect(warnings).toMatchObject([{ facts: { server: 'files', kind: 'stray-output' } }])
  expect(kind).toBe('SERVER_UNAVAILABLE')
  expect(message).toContain('It wrote "Listening on port 80" to stdout, which is only for MCP messages.')
  expect(message).toContain('log to stderr, or set mcpServers.files.startTimeout')
})

test('V2, E1: the error of a handshake that takes too long has the last lines of stderr', async () => {
  const code = `console.error('npm error code E404'); process.stdin.on('end', () => process.exit()).resume()`
  const { message } = await startFailure(code, 'E404')
  expect(message).toBe('files did not finish its handshake. It last wrote: "npm error code E404".')
})

test('V2: a configured startTimeout is the time that a server with other output gets', async () => {
  const { message } = await startFailure(
    `console.log('building'); process.stdin.on('end', () => process.exit()).resume()`,
    'building',
    60_000,
  )
  expect(message).toContain('files did not finish its handshake. It wrote "building" to stdout')
})

const spoken: Record<string, Record<string, object>> = {
  legacy: { initialize: { protocolVersion: '2025-11-25', capabilities: {} } },
  modern: { 'server/discover': { supportedVersions: ['2026-07-28'], capabilities: {} } },
}

/** Connects to a server over HTTP that answers these requests, and says in which era. */
async function eraOf(
  answers: Record<string, object>,
  config: object,
  { session, prefersSession = false }: { session?: string | undefined; prefersSession?: boolean } = {},
): Promise<string> {
  const { url } = await serving(
    onPost(({ message: { id, method = '' } = {} }, response) => {
      const known = answers[method]
      const hasSession = method === 'initialize' && session !== undefined
      if (known) return json(response, result(id, known), 200, hasSession ? { 'mcp-session-id': session } : undefined)
      return response.writeHead(method.startsWith('notifications/') ? 202 : 404).end()
    }),
  )
  const connect = createConnector({
    name: 'dual',
    config: { transport: 'http', url, headers: {}, ...config } as unknown as ServerConfig,
    identity: { name: 'toolway', version: '1' },
    clock: quick,
    log: silentLog,
  })
  const scope = { capabilities: {}, owned: false, prefersSession }
  const { connection, handshake } = await connect(scope, new AbortController().signal)
  await connection[Symbol.asyncDispose]()
  return handshake.era
}

test.each([
  ['both eras, with sessions', { ...spoken.legacy, ...spoken.modern }, 'abc', 'legacy'],
  ['both eras, without sessions', { ...spoken.legacy, ...spoken.modern }, undefined, 'modern'],
  ['the newer era only', spoken.modern, undefined, 'modern'],
  ['the older era only', spoken.legacy, undefined, 'legacy'],
] as const)('B2: a connection that should have a session, to a server of %s', async (_, answers, session, expected) => {
  expect(await eraOf(answers ?? {}, {}, { session, prefersSession: true })).toBe(expected)
})

test.each([
  ['fails to open a session now', 503, true],
  ['refuses to open one for want of a credential', 401, true],
  ['knows none', 404, false],
])('B2: a server that %s may offer sessions or not (HTTP %i)', async (_, status, expected) => {
  const { url } = await serving(
    onPost(({ message: { id, method = '' } = {} }, response) => {
      const known = spoken.modern?.[method]
      return known ? json(response, result(id, known)) : response.writeHead(status).end()
    }),
  )
  const connect = createConnector({
    name: 'stateless',
    config: { transport: 'http', url, headers: {} } as unknown as ServerConfig,
    identity: { name: 'toolway', version: '1' },
    clock: quick,
    log: silentLog,
  })
  const scope = { capabilities: {}, owned: true, prefersSession: true }
  const { connection, handshake, mayOfferSession } = await connect(scope, new AbortController().signal)
  await connection[Symbol.asyncDispose]()
  expect([handshake.era, mayOfferSession]).toEqual(['modern', expected])
})

test.each([
  ['the newer one', 'auto', 'modern'],
  ['the one with sessions if it is configured', 'legacy', 'legacy'],
])('B2: a server of both eras is used in %s', async (_, era, expected) => {
  expect(await eraOf({ ...spoken.legacy, ...spoken.modern }, { era })).toBe(expected)
})

test('B2: a server without sessions is not used with era: legacy, and the error says so', async () => {
  await expect(eraOf({ ...spoken.modern }, { era: 'legacy' })).rejects.toMatchObject({
    code: 'SERVER_UNAVAILABLE',
    message: expect.stringContaining('mcpServers.dual.era'),
  })
})

test.each([
  ['both eras', { ...spoken.legacy, ...spoken.modern }, 'legacy'],
  ['the newer era only', spoken.modern, 'modern'],
  ['the newer era only, with an empty result for unknown methods,', { ...spoken.modern, initialize: {} }, 'modern'],
])('B2: a process of %s is used with a session if possible, and started once', async (_, answers, expected) => {
  const folder = await temporaryFolder()
  await using _folder = folder
  const starts = join(folder.path, 'starts')
  const program = `
    require('node:fs').appendFileSync(${JSON.stringify(starts)}, 'x')
    const answers = ${JSON.stringify(answers)}
    require('node:readline').createInterface(process.stdin).on('line', (line) => {
      const { id, method } = JSON.parse(line)
      const reply = answers[method] ? { result: answers[method] } : { error: { code: -32601, message: 'unknown' } }
      if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, ...reply }))
    })`
  const connect = createConnector({
    name: 'process',
    config: {
      transport: 'stdio',
      command: process.execPath,
      args: ['-e', program],
      env: {},
    } as unknown as ServerConfig,
    identity: { name: 'toolway', version: '1' },
    clock: systemClock,
    log: silentLog,
  })
  const scope = { capabilities: {}, owned: true, prefersSession: true }
  const { connection, handshake } = await connect(scope, new AbortController().signal)
  await connection[Symbol.asyncDispose]()
  expect([handshake.era, await readFile(starts, 'utf8')]).toEqual([expected, 'x'])
})

test('B2: a stateless server that answers server/discover only after it has refused initialize is used', async () => {
  let discover = () => {}
  const { url } = await serving(
    onPost(({ message: { id, method = '' } = {} }, response) => {
      if (method === 'server/discover') {
        discover = () => json(response, result(id, spoken.modern?.['server/discover'] as object))
      } else response.writeHead(404).end(() => setImmediate(discover))
    }),
  )
  const connect = createConnector({
    name: 'slow',
    config: { transport: 'http', url, headers: {} } as unknown as ServerConfig,
    identity: { name: 'toolway', version: '1' },
    clock: quick,
    log: silentLog,
  })
  const { connection, handshake } = await connect({ capabilities: {}, owned: false }, new AbortController().signal)
  await connection[Symbol.asyncDispose]()
  expect(handshake.era).toBe('modern')
})

test('B2: a process that exits on `initialize` is started again for the stateless era', async () => {
  const program = `
    require('node:readline').createInterface(process.stdin).on('line', (line) => {
      const { id, method } = JSON.parse(line)
      if (method === 'initialize') process.exit(1)
      console.log(JSON.stringify({ jsonrpc: '2.0', id, result: ${JSON.stringify(spoken.modern?.['server/discover'])} }))
    })`
  const args = ['-e', program]
  const connect = createConnector({
    name: 'process',
    config: { transport: 'stdio', command: process.execPath, args, env: {} } as unknown as ServerConfig,
    identity: { name: 'toolway', version: '1' },
    clock: systemClock,
    log: silentLog,
  })
  const scope = { capabilities: {}, owned: true, prefersSession: true }
  const { connection, handshake, mayOfferSession } = await connect(scope, new AbortController().signal)
  await connection[Symbol.asyncDispose]()
  expect([handshake.era, mayOfferSession]).toEqual(['modern', undefined])
})

test('B2: a server that does not answer when asked for a session is not asked by each new client', async () => {
  const asked: string[] = []
  const { url } = await serving(
    onPost(({ message: { id, method = '' } = {} }, response) => {
      asked.push(method)
      const known = spoken.modern?.[method]
      if (known) json(response, result(id, known))
    }),
  )
  let now = 0
  const connect = createConnector({
    name: 'silent',
    config: { transport: 'http', url, headers: {} } as unknown as ServerConfig,
    identity: { name: 'toolway', version: '1' },
    clock: { ...quick, monotonic: () => now, after: (ms, callback) => quick.after(ms / 10, callback) },
    log: silentLog,
  })
  for (const at of [0, 299_999, 300_001]) {
    now = at
    const scope = { capabilities: {}, owned: true, prefersSession: true }
    const { connection, mayOfferSession } = await connect(scope, new AbortController().signal)
    await connection[Symbol.asyncDispose]()
    expect(mayOfferSession).toBe(true)
  }
  expect(asked.filter((method) => method === 'initialize')).toHaveLength(2)
})

test('B2: the era of a server that changed it is detected again when it reconnects', async () => {
  let speaks = 'legacy'
  const { url } = await serving(
    onPost(({ message: { id, method = '' } = {} }, response) => {
      const known = spoken[speaks]?.[method]
      if (known) return json(response, result(id, known))
      return response.writeHead(method.startsWith('notifications/') ? 202 : 404).end()
    }),
  )
  const connect = createConnector({
    name: 'moved',
    config: { transport: 'http', url, headers: {} } as unknown as ServerConfig,
    identity: { name: 'toolway', version: '1' },
    clock: quick,
    log: silentLog,
  })
  const era = async () => {
    const { connection, handshake } = await connect({ capabilities: {}, owned: false }, new AbortController().signal)
    await connection[Symbol.asyncDispose]()
    return handshake.era
  }
  expect(await era()).toBe('legacy')
  speaks = 'modern'
  await era().catch(() => {})
  expect(await era()).toBe('modern')
})

test('T1: the error of a handshake whose notification is rejected does not mention a call', async () => {
  const { url } = await serving(
    onPost(({ message: { id, method = '' } = {} }, response) => {
      const known = spoken.legacy?.[method]
      return known ? json(response, result(id, known)) : response.writeHead(400).end('no')
    }),
  )
  const connect = createConnector({
    name: 'strict',
    config: { transport: 'http', url, headers: {} } as unknown as ServerConfig,
    identity: { name: 'toolway', version: '1' },
    clock: quick,
    log: silentLog,
  })
  const { code, message, details } = await connect(
    { capabilities: {}, owned: false },
    new AbortController().signal,
  ).catch((thrown) => thrown)
  expect([code, details.requestOnly]).toEqual(['SERVER_UNAVAILABLE', undefined])
  expect(message).toMatch(/notifications\/initialized \(HTTP 400\)/)
  expect(message).not.toMatch(/arguments/)
})

test('T2, B6: the error with which a server answers initialize is shown, shortened and without secrets', async () => {
  const said = `No key \u202e a-secret-value:\n${'x'.repeat(100_000)}`
  const { url } = await serving(
    onPost(({ message: { id } = {} }, response) =>
      json(response, JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32000, message: said } })),
    ),
  )
  for (const era of [undefined, 'legacy']) {
    const connect = createConnector({
      name: 'locked',
      config: { transport: 'http', url, headers: {}, era } as unknown as ServerConfig,
      identity: { name: 'toolway', version: '1' },
      host: { redact: (text) => text.replaceAll('a-secret-value', '[hidden]') },
      clock: quick,
      log: silentLog,
    })
    const opening = connect({ capabilities: {}, owned: false }, new AbortController().signal)
    const { code, message } = await opening.catch((thrown) => thrown)
    expect(code).toBe('SERVER_UNAVAILABLE')
    expect(message).toMatch(/^locked rejected initialize: "No key +\[hidden\]: x{200,300}" \(error -32000\)\./)
    expect(message.length).toBeLessThan(500)
  }
})

test.each([
  ['while initialize is pending', true],
  ['after the handshake', false],
])(
  'B2: a response to server/discover that arrives late, %s, does not change the protocol',
  async (_, duringInitialize) => {
    let discover = () => {}
    const sessions: unknown[] = []
    const { url } = await serving(
      onPost(({ headers, message: { id, method = '' } = {} }, response) => {
        if (method === 'server/discover') {
          discover = () => json(response, result(id, spoken.modern?.['server/discover'] as object))
        } else if (method === 'initialize') {
          if (duringInitialize) discover()
          const body = result(id, spoken.legacy?.initialize as object)
          setImmediate(() => json(response, body, 200, { 'mcp-session-id': 'abc' }))
        } else {
          sessions.push([method, headers['mcp-session-id'], headers['mcp-protocol-version']])
          if (id === undefined) response.writeHead(headers['mcp-session-id'] ? 202 : 400).end()
          else json(response, result(id, {}))
        }
      }),
    )
    const connect = createConnector({
      name: 'slow',
      config: { transport: 'http', url, headers: {} } as unknown as ServerConfig,
      identity: { name: 'toolway', version: '1' },
      clock: quick,
      log: silentLog,
    })
    const { signal } = new AbortController()
    const { connection, handshake } = await connect({ capabilities: {}, owned: false }, signal)
    await using _open = connection
    if (!duringInitialize) discover()
    await connection.request({ method: 'tools/list', params: () => undefined, signal })
    expect(handshake.era).toBe('legacy')
    expect([connection.cancelsByMessage, connection.logsByRequest]).toEqual([true, false])
    expect(sessions).toEqual([
      ['notifications/initialized', 'abc', '2025-11-25'],
      ['tools/list', 'abc', '2025-11-25'],
    ])
  },
)
