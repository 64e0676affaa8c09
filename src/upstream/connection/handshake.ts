import { type Capabilities, type LogLevel, logLevels } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { deadline, endWith, pause } from '../../core/deadline.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { Json } from '../../json/json.ts'
import { asRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import { encodeHeaderValue } from '../../wire/param-headers.ts'
import {
  headerNames,
  isKnownRevision,
  latestLegacy,
  legacyRevisions,
  metaKeys,
  modernErrors,
  modernRevision,
} from '../../wire/revisions.ts'
import { statusOf } from '../transports/transport-errors.ts'
import { readHandshakeResult, type ServerDescription } from './handshake-result.ts'
import type { RpcConnection } from './rpc-connection.ts'

/** How long to wait for a response to `server/discover` before trying `initialize`. */
const silenceMs = { stdio: 2_000, http: 5_000, sse: 5_000 } as const

/**
 * Finds out which protocol a server speaks, on the connection that will be used for calls. Tries the stateless protocol
 * first, and falls back to `initialize` unless the server clearly supports the stateless one.
 */
export async function negotiate(
  connection: RpcConnection,
  options: HandshakeOptions & { clock: Clock },
): Promise<HandshakeResult> {
  // Some servers reject everything before `initialize`, so abandon `server/discover` without a message.
  connection.cancelsByMessage = false
  return adapt(connection, await detectEra(connection, options))
}

/** Uses the protocol with sessions if the server supports it, else the stateless one. For stdio only. */
export async function openSession(
  connection: RpcConnection,
  options: HandshakeOptions & { clock: Clock },
): Promise<HandshakeResult> {
  const other = new AbortController()
  const until = { ...options, signal: AbortSignal.any([options.signal, other.signal]) }
  connection.cancelsByMessage = false
  let isAnswered = false
  const answered = () => {
    isAnswered = true
  }
  const session = initialize(connection, { ...until, answered })
  let handshake: HandshakeResult
  try {
    using limit = deadline(options.clock, silenceMs.stdio, () => new Silence(), options.signal)
    handshake = await endWith(limit.signal, session)
  } catch (error) {
    if (options.signal.aborted || !connection.transport.usable) throw error
    // A server that only starts slowly answers both, in this order.
    const modern = discoverServer(connection, until).then((found) => (isAnswered ? session : found))
    const first = error instanceof Silence ? Promise.any([session, modern]) : modern
    handshake = await first.catch(() => session)
  } finally {
    other.abort(new Silence())
  }
  return adapt(connection, handshake)
}

/** Makes the connection follow the rules of the server's protocol. */
function adapt(connection: RpcConnection, handshake: HandshakeResult): HandshakeResult {
  const { transport } = connection
  const isStateless = handshake.era === 'modern'
  if (isStateless) transport.established(modernRevision, 'modern')
  connection.cancelsByMessage = !isStateless || transport.kind === 'stdio'
  connection.logsByRequest = isStateless
  return handshake
}

async function detectEra(
  connection: RpcConnection,
  options: HandshakeOptions & { clock: Clock },
): Promise<HandshakeResult> {
  const { kind } = connection.transport
  const { server, clock } = options
  const probes = new AbortController()
  const until = { ...options, signal: AbortSignal.any([options.signal, probes.signal]) }
  const modern = discoverServer(connection, until)
  modern.catch(() => {})
  try {
    let first: unknown
    try {
      using limit = deadline(clock, silenceMs[kind], () => new Silence(), options.signal)
      return await endWith(limit.signal, modern)
    } catch (error) {
      if (!mayBeOtherEra(error)) throw error
      first = error
    }
    try {
      let isAnswered = false
      const answered = () => {
        isAnswered = true
      }
      const session = initialize(connection, { ...until, answered })
      if (!(first instanceof Silence)) return await session
      // A slow server may support both, or ignore `initialize`.
      const later = lastResort(modern, silenceMs[kind], until).then((found) => (isAnswered ? session : found))
      return await Promise.race([session, later])
    } catch (error) {
      // A stateless server that is slow: its response to `server/discover` has arrived or is on its way.
      if (first instanceof Silence && mayBeOtherEra(error)) return await modern.catch(() => Promise.reject(error))
      if (first instanceof NotModern && refusesSession(error)) throw first.unsupported(server) ?? error
      // If every request to the server is failing, the first error explains more.
      throw (statusOf(first) ?? 0) >= 500 ? first : error
    }
  } finally {
    probes.abort(new Silence())
  }
}

/** The result of `server/discover`, some time after it has arrived; stays pending if that fails. */
async function lastResort(
  modern: Promise<HandshakeResult>,
  ms: number,
  { clock, signal }: HandshakeOptions & { clock: Clock },
): Promise<HandshakeResult> {
  const found = await modern.catch(() => new Promise<never>(() => {}))
  await pause(clock, ms, signal).catch(() => {})
  return found
}

class Silence extends Error {
  override readonly name = 'Silence'
}

/** Whether the other era's handshake may succeed after this error. It cannot if the credentials were rejected. */
export function mayBeOtherEra(error: unknown): boolean {
  if (error instanceof NotModern || error instanceof Silence || error instanceof ServerError) return true
  const status = error instanceof ToolwayError ? statusOf(error) : undefined
  return status !== undefined && status >= 400 && status !== 401 && status !== 403 && status !== 429
}

/** Whether a server that speaks the stateless protocol has refused to open a session, and will refuse it again. */
export function refusesSession(error: unknown): boolean {
  return error instanceof ServerError || ((statusOf(error) ?? 500) < 500 && mayBeOtherEra(error))
}

/** Thrown if the server does not speak the stateless protocol, which is not a failure. */
class NotModern extends Error {
  override readonly name = 'NotModern'
  readonly #versions: readonly string[]

  /** `versions` is what the server says it supports, if it does. */
  constructor(versions?: unknown) {
    super()
    this.#versions = Array.isArray(versions) ? versions.filter((version) => typeof version === 'string') : []
  }

  /** The error for a server that supports other revisions only, and opens no session either; undefined for others. */
  unsupported(server: string): ToolwayError | undefined {
    const versions = this.#versions
    if (versions.length === 0 || versions.some((version) => isKnownRevision(version, 'legacy'))) return undefined
    const named = versions.slice(0, maxNamedVersions).map((version) => quote(version))
    const all = [...named, ...(versions.length > named.length ? ['…'] : [])].join(', ')
    const sentence = `${server} supports only protocol versions that Toolway does not: ${all}. Toolway supports ${modernRevision} and ${legacyRevisions.join(', ')}.`
    return new ToolwayError('SERVER_UNAVAILABLE', sentence, { server })
  }
}

/** How many of a server's protocol versions an error names. */
const maxNamedVersions = 5

/**
 * Sends `server/discover`. Only a list of versions proves that the server is stateless: session-based servers may
 * respond with any error, and some answer unknown methods with an empty result.
 */
async function discoverServer(connection: RpcConnection, options: HandshakeOptions): Promise<HandshakeResult> {
  const { identity, capabilities, signal } = options
  const params = Json.of({ _meta: modernMeta(identity, capabilities) }).bytes
  const headers = { [headerNames.version]: modernRevision, ...standardHeaders('server/discover') }
  const ask = () => connection.request({ method: 'server/discover', params: () => params, headers, signal })
  const { result } = await ask().catch((error) => again(error, ask))
  const { body, described } = readHandshakeResult('server/discover', result)
  const { supportedVersions } = body
  if (!Array.isArray(supportedVersions) || !supportedVersions.includes(modernRevision))
    throw new NotModern(supportedVersions)
  return { era: 'modern', protocolVersion: modernRevision, ...described }
}

/** Asks once more if the server rejected our version although it lists that version as supported. */
function again<T>(error: unknown, ask: () => Promise<T>): Promise<T> {
  if (!(error instanceof ServerError)) throw error
  const { code, data } = error.error.value
  const { supported } = asRecord(data)
  if (code !== modernErrors.unsupportedVersion || !Array.isArray(supported) || !supported.includes(modernRevision))
    throw new NotModern(code === modernErrors.unsupportedVersion ? supported : undefined)
  return ask()
}

interface HandshakeOptions {
  readonly server: string
  readonly identity: ClientIdentity
  readonly capabilities: Capabilities
  readonly log: Log
  readonly signal: AbortSignal
  /** Called when the server has accepted a session. */
  answered?(): void
}

/** The session-based handshake. An unknown revision is a warning, not a failure (F5). */
export async function initialize(connection: RpcConnection, options: HandshakeOptions): Promise<HandshakeResult> {
  const { server, identity, capabilities, log, signal } = options
  const hello = { protocolVersion: latestLegacy, capabilities, clientInfo: identity }
  const { result } = await connection.request({ method: 'initialize', params: () => Json.of(hello).bytes, signal })
  const { body, described } = readHandshakeResult('initialize', result)
  const { protocolVersion } = body
  if (typeof protocolVersion !== 'string') {
    const sentence = `${server} sent no protocol version in its response to initialize.`
    throw new ToolwayError('SERVER_UNAVAILABLE', sentence, { server })
  }
  options.answered?.()
  if (!isKnownRevision(protocolVersion, 'legacy')) {
    const answered = protocolVersion.slice(0, 100)
    const message = `unknown protocol version ${answered}; Toolway requested ${latestLegacy}`
    log.warn({ server, asked: latestLegacy, answered }, message)
  }
  connection.transport.established(protocolVersion)
  await connection.notify('notifications/initialized').catch((error) => {
    throw aboutHandshake(server, error)
  })
  return { era: 'legacy', protocolVersion, ...described }
}

/** The error for a rejected notification of the handshake. There is no call whose arguments could be changed. */
function aboutHandshake(server: string, error: unknown): unknown {
  const status = statusOf(error)
  if (!(error instanceof ToolwayError) || !error.details.requestOnly || status === 403) return error
  const sentence = `${server} rejected notifications/initialized (HTTP ${status}), which completes the handshake. See its log.`
  return new ToolwayError('SERVER_UNAVAILABLE', sentence, { ...error.details, requestOnly: undefined })
}

export interface HandshakeResult extends ServerDescription {
  readonly era: 'legacy' | 'modern'
  readonly protocolVersion: string
}

export interface ClientIdentity {
  readonly name: string
  readonly version: string
}

export interface InitializedConnection {
  readonly connection: RpcConnection
  readonly handshake: HandshakeResult
  readonly identity: ClientIdentity
  /** The principal whose credential the connection uses, if each principal has its own. */
  readonly principal?: string
  /** Whether the server failed to open a session for a reason that may not last. */
  readonly mayOfferSession?: boolean
}

/** Whether the server may keep state, such as different lists, for the one client of this connection. */
export const isStateful = ({ connection }: InitializedConnection): boolean => connection.owned && connection.isUsed

const requestedLevels = new WeakMap<InitializedConnection, LogLevel>()

/**
 * Sets a session-based server's log level. The level applies to the whole connection, so it is only ever made more
 * verbose; Toolway filters the messages for callers that want fewer.
 */
export async function requestLogLevel(open: InitializedConnection, level: LogLevel, signal: AbortSignal) {
  const { handshake, connection } = open
  if (handshake.era === 'modern' || handshake.capabilities.logging === undefined) return
  const current = requestedLevels.get(open)
  if (current !== undefined && logLevels.indexOf(current) <= logLevels.indexOf(level)) return
  requestedLevels.set(open, level)
  const params = Buffer.from(JSON.stringify({ level }))
  // Some servers declare logging but do not support levels.
  await connection.request({ method: 'logging/setLevel', params: () => params, signal }).catch(() => {})
}

/** The `_meta` members that every stateless request carries. */
export const modernMeta = (identity: ClientIdentity, capabilities: Capabilities, logLevel?: LogLevel) => ({
  [metaKeys.protocolVersion]: modernRevision,
  [metaKeys.clientInfo]: identity,
  [metaKeys.clientCapabilities]: capabilities,
  [metaKeys.logLevel]: logLevel,
})

/** The headers that repeat the method of a stateless request and the name of its target. */
export const standardHeaders = (method: string, name?: string): Record<string, string> => ({
  [headerNames.method]: method,
  ...(name !== undefined && { [headerNames.name]: encodeHeaderValue(name) }),
})
