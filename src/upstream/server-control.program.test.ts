import { expect, onTestFinished, test } from 'vitest'
import { configSchema, type ServerConfig } from '../config/schema.ts'
import { callOf } from '../core/call.fixture.ts'
import { systemClock } from '../core/clock.ts'
import { silentLog } from '../core/log.ts'
import { Json } from '../json/json.ts'
import { createSeal } from '../lib/seal.ts'
import { createConnector } from './connection/connect.ts'
import { serverWith } from './server.fixture.ts'
import { UpstreamServer } from './server.ts'
import { gone, rogue } from './transports/stdio.fixture.ts'

const callOn = (server: UpstreamServer, [entry] = server.entries()) => {
  if (!entry) throw new Error('no entry')
  return entry.run(callOf({ entry, input: { arguments: Json.of({}), meta: {} } }))
}

test('G10: a server that is turned off lists nothing, refuses calls with a sentence, and is asked for nothing', async () => {
  const { server, peers, names, clock } = serverWith()
  await server.ready()
  const known = server.entries()
  const heard: string[][] = []
  server.onChange(() => heard.push(names()))
  await server.control.pause()
  expect(peers[0]?.disposed).toBe(true)
  expect(server.control.paused).toBe(true)
  expect(heard.at(-1)).toEqual([])
  expect([names(), server.instructions, server.capabilities]).toEqual([[], '', {}])
  expect(server.status()).toMatchObject({ health: 'disabled', reason: expect.stringContaining('by an operator') })
  await expect(callOn(server, known)).rejects.toMatchObject({
    code: 'SERVER_DISABLED',
    message: expect.stringContaining('operator'),
  })
  await Promise.all([server.ready(), server.refresh()])
  await clock.pass(600_000)
  expect(peers).toHaveLength(1)

  server.control.resume()
  expect(names()).toEqual(['read'])
  await callOn(server)
  expect(peers).toHaveLength(2)
  expect(server.status()).toMatchObject({ health: 'healthy', reason: '' })
  await server[Symbol.asyncDispose]()
  expect(clock.pending).toBe(0)
})

test('G10: a restart closes and reopens connections, and calls in flight may have run', async () => {
  let hangs = false
  let tools = ['read']
  const { server, peers, names, clock } = serverWith({ tools: () => tools, hangs: () => hangs })
  await server.ready()
  hangs = true
  const waiting = server.refresh()
  await clock.pass(0)
  hangs = false
  tools = ['read', 'write']
  await server.control.restart()
  await waiting
  expect(peers.map(({ disposed }) => disposed)).toEqual([true, false])
  expect(names()).toEqual(['read', 'write'])
  expect(server.status()).toMatchObject({ health: 'healthy', reason: '' })
  await server[Symbol.asyncDispose]()
})

test('G10: a restart enables a server again, and one beyond its restart limit is tried at once', async () => {
  let down = true
  const { server, peers, clock } = serverWith({ down: () => down, changes: { restarts: { max: 0, window: '1h' } } })
  await server.refresh()
  expect(server.status().health).toBe('unhealthy')
  down = false
  await server.refresh()
  expect(server.status().health).toBe('unhealthy')
  await server.control.pause()
  await server.control.restart()
  expect(server.control.paused).toBe(false)
  expect(server.status().health).toBe('healthy')
  expect(peers).toHaveLength(1)
  await server[Symbol.asyncDispose]()
  expect(clock.pending).toBe(0)
})

test('G10: a restart that fails settles, and the status has the reason', async () => {
  let down = false
  const { server } = serverWith({ down: () => down })
  await server.ready()
  down = true
  await server.control.restart()
  expect(server.status()).toMatchObject({ health: 'unhealthy', reason: expect.stringContaining('files is down.') })
  await server[Symbol.asyncDispose]()
})

test('G10: pausing a server that does not finish its handshake ends all waiting and its process', async () => {
  const { server } = realServer(['-e', 'console.error(process.pid); setInterval(() => {}, 1000)'])
  const waiting = server.refresh()
  await expect.poll(() => server.control.stderr()).toHaveLength(1)
  await server.control.pause()
  await waiting
  await gone(Number(server.control.stderr()[0]?.text))
  expect(server.control.process).toBeUndefined()
  expect(server.status().health).toBe('disabled')
})

test('G10: the process of a server is known, with its restarts and with what it wrote last', async () => {
  const { server } = realServer([rogue], { SECRET_TOKEN: 'a-very-secret-value' })
  await server.ready()
  const first = server.control.process
  expect(first).toMatchObject({ pid: expect.any(Number), restarts: 0 })
  expect(first?.startedAt).toBeLessThanOrEqual(Date.now())
  await server.control.restart()
  const second = server.control.process
  expect(second?.restarts).toBe(1)
  expect(second?.pid).not.toBe(first?.pid)
  await gone(first?.pid as number)
  const { length: known } = server.control.describe(10)
  expect([known, server.control.describe(10)[0]]).toMatchObject([1, { scope: 'shared', pid: second?.pid }])
  process.kill(second?.pid as number, 'SIGKILL')
  await gone(second?.pid as number)
  const kinds = () => server.control.events().map(({ kind, pid }) => [kind, pid])
  await expect.poll(kinds).toEqual([
    ['lost', second?.pid],
    ['started', second?.pid],
    ['restarted', undefined],
    ['started', first?.pid],
  ])
  expect(server.control.events()[0]?.reason).toContain('SIGKILL')
  await server.control.pause()
  expect(server.control.process).toBeUndefined()
  expect(server.control.events()[0]?.kind).toBe('paused')
})

test('G10, B6: stderr is kept beyond the end of the process, line by line, without secrets, and bounded', async () => {
  const script = `for (let n = 1; n <= 190; n++) console.error('line ' + n); console.error('key ' + process.env.KEY); process.exit(1)`
  const { server } = realServer(['-e', script], { KEY: 'a-very-secret-value' })
  await server.refresh()
  // On a busy machine, the last lines arrive later. The server may have been restarted by then and write them again.
  const last = expect.arrayContaining(['line 190', 'key [redacted]'])
  const texts = () => server.control.stderr().map(({ text }) => text)
  await expect.poll(texts).toEqual(last)
  const lines = texts()
  for (const { at } of server.control.stderr()) expect(at).toBeLessThanOrEqual(Date.now())
  expect(server.control.events()).toContainEqual(
    expect.objectContaining({ kind: 'failed', reason: expect.stringContaining('exit code 1') }),
  )
  expect(lines.length).toBeLessThanOrEqual(200)
  expect(lines.join()).not.toContain('a-very-secret-value')
})

/** A server that runs as a real process. */
function realServer(args: string[], env: Record<string, string> = {}) {
  const { mcpServers } = configSchema.parse({ mcpServers: { files: { command: process.execPath, args, env } } })
  const config = mcpServers.files as ServerConfig
  const parts = { name: 'files', config, clock: systemClock, log: silentLog }
  const server = new UpstreamServer({
    ...parts,
    defaults: { timeoutMs: 30_000, refreshMs: 0, discovery: 'runtime' },
    host: {
      store: { load: async () => undefined, save: async () => {} },
      servedUris: () => (uri) => uri,
      seal: createSeal('a secret for the test'),
    },
    connect: createConnector({ ...parts, identity: { name: 'toolway', version: '1' } }),
  })
  onTestFinished(() => server[Symbol.asyncDispose]() as Promise<void>)
  return { server }
}
