import type { ServerConfig } from '../config/schema.ts'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { openConnection } from './connection.ts'
import { shakeHands } from './handshake.ts'
import type { OpenLine } from './line.ts'
import { refusesStreamableHttp } from './transports/failures.ts'
import { httpTransport } from './transports/http.ts'
import { sseTransport } from './transports/sse.ts'
import { stdioTransport } from './transports/stdio.ts'
import type { Transport } from './transports/transport.ts'

export interface ConnectOptions {
  readonly name: string
  readonly config: ServerConfig
  readonly version: string
  readonly clock: Clock
  readonly log: Log
}

/** Opens a line to a server and introduces us. Whatever was opened is closed again if that fails. */
export async function connect(options: ConnectOptions, signal: AbortSignal): Promise<OpenLine> {
  try {
    return await greet(transportFor(options), options, signal)
  } catch (error) {
    if (options.config.transport !== 'http' || !refusesStreamableHttp(error)) throw error
    options.log.info({ server: options.name }, 'the server refused Streamable HTTP; trying the older HTTP+SSE')
    // The first error stays the one to report: most servers are meant to speak Streamable HTTP.
    return greet(transportFor(options, 'sse'), options, signal).catch(() => Promise.reject(error))
  }
}

async function greet(transport: Transport, options: ConnectOptions, signal: AbortSignal): Promise<OpenLine> {
  try {
    const connection = await openConnection(transport, options.log, signal)
    const introduction = await shakeHands(connection, { ...options, server: options.name, signal })
    return { connection, introduction }
  } catch (error) {
    await transport[Symbol.asyncDispose]()
    throw error
  }
}

function transportFor({ name, config, clock, log }: ConnectOptions, kind = config.transport): Transport {
  if (config.transport === 'stdio') {
    const { command, args, cwd, env } = config
    return stdioTransport({ name, command, args, cwd, env, clock, log })
  }
  const { url, auth } = config
  const token = auth?.type === 'bearer' ? { authorization: `Bearer ${auth.token}` } : {}
  const options = { name, url, headers: { ...token, ...config.headers }, clock, log }
  return kind === 'sse' ? sseTransport(options) : httpTransport(options)
}
