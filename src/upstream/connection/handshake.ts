import { type Capabilities, type LogLevel, logLevels } from '../../core/capabilities.ts'
import type { Clock } from '../../core/clock.ts'
import { deadline, waitFor } from '../../core/deadline.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import type { Log } from '../../core/log.ts'
import { asRecord } from '../../lib/is-record.ts'
import { encodeHeaderValue } from '../../wire/param-headers.ts'
import {
  headerNames,
  isKnownRevision,
  latestLegacy,
  metaKeys,
  modernErrors,
  modernRevision,
} from '../../wire/revisions.ts'
import { statusOf } from '../transports/transport-errors.ts'
import type { RpcConnection } from './rpc-connection.ts'

/** Who does not answer an unknown question is not waited for longer; a process may only be slow to start. */
const silenceMs = { stdio: 2_000, http: 5_000, sse: 5_000 } as const

/**
 * Finds out which era a server speaks, on the line that will be used: the stateless one is asked for first,
 * and whatever is no clear answer in it leads to the handshake of the other one.
 */
export async function negotiate(
  connection: RpcConnection,
  options: HandshakeOptions & { clock: Clock },
): Promise<HandshakeResult> {
  const modern = discoverServer(connection, options)
  modern.catch(() => {})
  let first: unknown
  try {
    return await soon(modern, connection, options)
  } catch (error) {
    if (!mayBeLegacy(error)) throw error
    first = error
  }
  try {
    return await initialize(connection, options)
  } catch (error) {
    // Slow to start, and of the stateless era after all: the answer to the first question is on its way or here.
    if (connection.transport.kind === 'stdio' && error instanceof ServerError) {
      return await modern.catch(() => Promise.reject(error))
    }
    // A server that fails whatever it is asked has said why the first time.
    throw (statusOf(first) ?? 0) >= 500 ? first : error
  }
}

class Silence extends Error {
  override readonly name = 'Silence'
}

async function soon(
  modern: Promise<HandshakeResult>,
  { transport }: RpcConnection,
  options: HandshakeOptions & { clock: Clock },
) {
  using limit = deadline(options.clock, silenceMs[transport.kind], () => new Silence(), options.signal)
  return await waitFor(modern, limit.signal)
}

/** Credentials that were refused would be refused again; whatever else is no clear answer may be a server of the other era. */
function mayBeLegacy(error: unknown): boolean {
  if (error instanceof NotModern || error instanceof Silence || error instanceof ServerError) return true
  const status = error instanceof ToolwayError ? statusOf(error) : undefined
  return status !== undefined && status >= 400 && status !== 401 && status !== 403 && status !== 429
}

/** An answer that only a server of the other era gives; it is no failure of the server. */
class NotModern extends Error {
  override readonly name = 'NotModern'
}

/**
 * Asks a server what it offers in the stateless era. Only a list of versions proves that it speaks it: servers of the
 * other era answer with any error, and some answer an unknown method with an empty result.
 */
async function discoverServer(connection: RpcConnection, options: HandshakeOptions): Promise<HandshakeResult> {
  const { identity, capabilities, signal } = options
  const params = Json.of({ _meta: modernMeta(identity, capabilities) }).bytes
  const headers = { [headerNames.version]: modernRevision, ...standardHeaders('server/discover') }
  const ask = () => connection.request({ method: 'server/discover', params: () => params, headers, signal })
  const { result } = await ask().catch((error) => again(error, ask))
  const body = Json.raw<Record<string, unknown>>(result).value
  const { supportedVersions, instructions } = body
  if (!Array.isArray(supportedVersions) || !supportedVersions.includes(modernRevision)) throw new NotModern()
  connection.transport.established(modernRevision, 'modern')
  connection.cancelsByMessage = connection.transport.kind === 'stdio'
  connection.logsByRequest = true
  return {
    era: 'modern',
    protocolVersion: modernRevision,
    serverInfo: asRecord(asRecord(body._meta)[metaKeys.serverInfo] ?? body.serverInfo),
    capabilities: asRecord(body.capabilities),
    ...(typeof instructions === 'string' && { instructions }),
  }
}

/** A server that refuses the version and then names the very same one wants to be asked once more. */
function again<T>(error: unknown, ask: () => Promise<T>): Promise<T> {
  if (!(error instanceof ServerError)) throw error
  const { code, data } = error.error.value
  const { supported } = asRecord(data)
  if (code !== modernErrors.unsupportedVersion || !Array.isArray(supported) || !supported.includes(modernRevision))
    throw new NotModern()
  return ask()
}

interface HandshakeOptions {
  readonly server: string
  readonly identity: ClientIdentity
  /** Those of whoever the line is for. */
  readonly capabilities: Capabilities
  readonly log: Log
  readonly signal: AbortSignal
}

/** The handshake of the era with sessions. A revision that we do not know is a warning, not a failure (F5). */
export async function initialize(connection: RpcConnection, options: HandshakeOptions): Promise<HandshakeResult> {
  const { server, identity, capabilities, log, signal } = options
  const hello = { protocolVersion: latestLegacy, capabilities, clientInfo: identity }
  const { result } = await connection.request({ method: 'initialize', params: () => Json.of(hello).bytes, signal })
  const body = Json.raw<Record<string, unknown>>(result).value
  const { protocolVersion } = body
  if (typeof protocolVersion !== 'string') {
    throw new ToolwayError('SERVER_UNAVAILABLE', `${server} answered initialize without a protocol version.`, {
      server,
    })
  }
  if (!isKnownRevision(protocolVersion, 'legacy')) {
    log.warn(
      { server, asked: latestLegacy, answered: protocolVersion },
      `the server speaks protocol ${protocolVersion}, which Toolway does not know; it asked for ${latestLegacy}`,
    )
  }
  connection.transport.established(protocolVersion)
  await connection.notify('notifications/initialized')
  return {
    era: 'legacy',
    protocolVersion,
    serverInfo: asRecord(body.serverInfo),
    capabilities: asRecord(body.capabilities),
    ...(typeof body.instructions === 'string' && { instructions: body.instructions }),
  }
}

/** What a server said about itself when the line was opened. */
export interface HandshakeResult {
  readonly era: 'legacy' | 'modern'
  readonly protocolVersion: string
  readonly serverInfo: Readonly<Record<string, unknown>>
  readonly capabilities: Capabilities
  readonly instructions?: string
}

/** How we present ourselves to servers. */
export interface ClientIdentity {
  readonly name: string
  readonly version: string
}

/** A connection on which both sides know each other. */
export interface InitializedConnection {
  readonly connection: RpcConnection
  readonly handshake: HandshakeResult
  readonly identity: ClientIdentity
  /** Whose credential it goes by, where each has its own. */
  readonly principal?: string
}

const asked = new WeakMap<InitializedConnection, LogLevel>()

/**
 * Asks a server of the era with sessions for log messages from this level on. The level holds for the whole line,
 * so it only ever goes down: whoever wants less hears less at the door.
 */
export async function requestLogLevel(
  open: InitializedConnection,
  level: LogLevel,
  signal: AbortSignal,
): Promise<void> {
  const { handshake, connection } = open
  if (handshake.era === 'modern' || handshake.capabilities.logging === undefined) return
  const current = asked.get(open)
  if (current !== undefined && logLevels.indexOf(current) <= logLevels.indexOf(level)) return
  asked.set(open, level)
  const params = Buffer.from(JSON.stringify({ level }))
  // A server that declares logging and knows no levels still logs.
  await connection.request({ method: 'logging/setLevel', params: () => params, signal }).catch(() => {})
}

/** The envelope that every request of the stateless era carries. */
export const modernMeta = (identity: ClientIdentity, capabilities: Capabilities, logLevel?: LogLevel) => ({
  [metaKeys.protocolVersion]: modernRevision,
  [metaKeys.clientInfo]: identity,
  [metaKeys.clientCapabilities]: capabilities,
  ...(logLevel && { [metaKeys.logLevel]: logLevel }),
})

/** The headers that repeat what a request of the stateless era is about. */
export const standardHeaders = (method: string, name?: string): Record<string, string> => ({
  [headerNames.method]: method,
  ...(name !== undefined && { [headerNames.name]: encodeHeaderValue(name) }),
})
