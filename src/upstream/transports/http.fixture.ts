import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'
import { serverProgram } from '../../../tests/fixtures/programs.ts'
import { json, type RogueHttp, result, rogueHttp, type Script } from '../../../tests/fixtures/rogue-http.ts'
import { type Clock, systemClock } from '../../core/clock.ts'
import { silentLog } from '../../core/log.ts'
import { notificationBytes, requestBytes } from '../../wire/message.ts'
import { HttpTransport } from './http.ts'
import type { HttpTransportOptions } from './http-base.ts'
import { ask, type Collector, collector } from './receiver.fixture.ts'
import type { SseTransport } from './sse.ts'
import type { Transport } from './transport.ts'

/** A clock whose timers run ten times faster: pauses keep their order but cost little time. */
export const quick: Clock = { ...systemClock, after: (ms, callback) => systemClock.after(ms / 10, callback) }

/** A fast clock that also counts its running timers. */
export function countingClock(): Clock & { readonly running: number } {
  const timers = new Set<Disposable>()
  return {
    now: quick.now,
    monotonic: quick.monotonic,
    get running() {
      return timers.size
    },
    after(ms, callback) {
      const timer = quick.after(ms, () => {
        timers.delete(stop)
        callback()
      })
      const stop = {
        [Symbol.dispose]() {
          timers.delete(stop)
          timer[Symbol.dispose]()
        },
      }
      timers.add(stop)
      return stop
    },
  }
}

const never = new AbortController().signal

/** A real HTTP server with this behaviour, for one test. */
export async function serving(script: Script): Promise<RogueHttp> {
  const server = await rogueHttp(script)
  onTestFinished(() => server[Symbol.asyncDispose]())
  return server
}

/** Opens a transport for one test. */
export async function opened(
  url: string,
  options: Partial<HttpTransportOptions> = {},
  kind: typeof HttpTransport | typeof SseTransport = HttpTransport,
) {
  const transport = new kind({ name: 'rogue', url, headers: {}, clock: quick, log: silentLog, ...options })
  onTestFinished(() => transport[Symbol.asyncDispose]() as Promise<void>)
  const heard = collector()
  await transport.open(heard, never)
  return { transport, heard }
}

/** A transport whose server has completed the handshake and follows the script from then on. */
export async function rogue(
  script: Script,
  {
    session = 'session-1',
    clock = quick,
    exceeded,
  }: { session?: string | (() => string | undefined) } & Partial<Pick<HttpTransportOptions, 'clock' | 'exceeded'>> = {},
) {
  const server = await serving((got, response, socket) => {
    const { method, id } = got.message ?? {}
    if (method === 'initialize') {
      const given = typeof session === 'string' ? session : session()
      if (given === undefined) return script(got, response, socket)
      const headers: Record<string, string> = given === '' ? {} : { 'mcp-session-id': given }
      return json(response, result(id, { protocolVersion: '2025-11-25' }), 200, headers)
    }
    if (method === 'notifications/initialized') return response.writeHead(202).end()
    if (got.method === 'DELETE') return response.writeHead(200).end()
    return script(got, response, socket)
  })
  const { transport, heard } = await opened(server.url, { clock, exceeded })
  await handshake(transport, heard)
  return { server, transport, heard }
}

export async function handshake(transport: Transport, heard: Collector): Promise<void> {
  const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  const { protocolVersion } = await ask(transport, heard, 0, 'initialize', hello)
  transport.established(protocolVersion)
  await transport.send({ body: notificationBytes('notifications/initialized') })
}

export const call = (transport: Transport, exchange = 1, signal?: AbortSignal): Promise<void> =>
  transport.send({ body: requestBytes(exchange, 'tools/call'), exchange, ...(signal && { signal }) })

/** Resolves with the error with which a promise rejects. */
export const thrown = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error) => error,
  )

/** Answers GET like a server without its own stream, and all other requests according to the script. */
export const onPost =
  (script: Script): Script =>
  (got, response, socket) =>
    got.method === 'GET' ? response.writeHead(405).end() : script(got, response, socket)

/** Starts the official "everything" server for one test, on a free port; returns its origin. */
export async function everything(kind: 'streamableHttp' | 'sse'): Promise<string> {
  const free = createServer().listen(0)
  await once(free, 'listening')
  const { port } = free.address() as { port: number }
  free.close()
  await once(free, 'close')
  const script = serverProgram('everything')
  const child = spawn(process.execPath, [script, kind], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  for await (const line of createInterface({ input: child.stderr })) if (/on port/.test(line)) break
  child.stderr.resume()
  return `http://127.0.0.1:${port}`
}
