import { type Capabilities, type LogLevel, logLevels } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { deadline, endWith, pause } from '../../core/deadline.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { ServerFinding } from '../../core/source-status.ts'
import { Json } from '../../json/json.ts'
import { walk } from '../../json/json-text.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import { quote, shorten } from '../../lib/message-text.ts'
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
import { withCommas } from '../listing/list-reader.ts'
import { maxAdvice } from '../listing/offers.ts'
import { statusOf } from '../transports/transport-errors.ts'
import type { RpcConnection } from './rpc-connection.ts'

/** How long to wait for a response to `server/discover` before trying `initialize`. */
const discoverWithinMs = { stdio: 2_000, http: 5_000, sse: 5_000 } as const

/**
 * Finds out which protocol a server speaks, on the connection that will be used for calls. Tries the stateless protocol
 * first, and falls back to `initialize` unless the server clearly supports the stateless one.
 */
export async function negotiate(connection: RpcConnection, options: HandshakeOptions): Promise<HandshakeResult> {
  // Some servers reject everything before `initialize`, so abandon `server/discover` without a message.
  connection.cancelsByMessage = false
  return adapt(connection, await detectEra(connection, options))
}

/** Uses the protocol with sessions if the server supports it, else the stateless one. For stdio only. */
export async function openSession(connection: RpcConnection, options: HandshakeOptions): Promise<HandshakeResult> {
  const other = new AbortController()
  const until = { ...options, signal: AbortSignal.any([options.signal, other.signal]) }
  connection.cancelsByMessage = false
  const progress = { isAnswered: false }
  const session = initialize(connection, { ...until, progress })
  let handshake: HandshakeResult
  try {
    using limit = deadline(options.clock, discoverWithinMs.stdio, () => new Silence(), options.signal)
    handshake = await endWith(limit.signal, session)
  } catch (error) {
    if (options.signal.aborted || !connection.transport.usable) throw error
    // A server that only starts slowly answers both, in this order.
    const modern = discoverServer(connection, until).then((found) => (progress.isAnswered ? session : found))
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

async function detectEra(connection: RpcConnection, options: HandshakeOptions): Promise<HandshakeResult> {
  const { kind } = connection.transport
  const { server, clock } = options
  const probes = new AbortController()
  const until = { ...options, signal: AbortSignal.any([options.signal, probes.signal]) }
  const modern = discoverServer(connection, until)
  modern.catch(() => {})
  try {
    let first: unknown
    try {
      using limit = deadline(clock, discoverWithinMs[kind], () => new Silence(), options.signal)
      return await endWith(limit.signal, modern)
    } catch (error) {
      if (!mayBeOtherEra(error)) throw error
      first = error
    }
    try {
      const progress = { isAnswered: false }
      const session = initialize(connection, { ...until, progress })
      if (!(first instanceof Silence)) return await session
      // A slow server may support both, or ignore `initialize`.
      const later = lastResort(modern, discoverWithinMs[kind], until).then((found) =>
        progress.isAnswered ? session : found,
      )
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
  { clock, signal }: HandshakeOptions,
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
    const all = joinNames(versions, maxNamedVersions)
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
  const { result } = await ask().catch((error) => askAgain(error, ask))
  const { body, described } = readHandshakeResult('server/discover', result)
  const { supportedVersions } = body
  if (!Array.isArray(supportedVersions) || !supportedVersions.includes(modernRevision))
    throw new NotModern(supportedVersions)
  return { era: 'modern', protocolVersion: modernRevision, ...described }
}

/** Asks once more if the server rejected our version although it lists that version as supported. */
function askAgain<T>(error: unknown, ask: () => Promise<T>): Promise<T> {
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
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
  /** Is updated when the server has accepted a session. */
  readonly progress?: { isAnswered: boolean }
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
  if (options.progress) options.progress.isAnswered = true
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

/** What a server says about itself in the handshake. */
export interface ServerDescription {
  readonly serverInfo: Readonly<Record<string, unknown>>
  readonly capabilities: Capabilities
  readonly instructions?: string | undefined
  /** What was shortened or left out. */
  readonly findings?: readonly ServerFinding[] | undefined
}

/** Above this size, only members of at most `maxMember` bytes are parsed. */
const maxHandshake = 64 * 1024
const maxMember = 4 * 1024
const maxInstructionsLength = 64 * 1024
/** The maximum length of the server's name, title and version. */
const maxInfoText = 1_024
/** How many members a finding names. */
const maxNamedMembers = 10

/**
 * Reads the result of `initialize` or `server/discover`. Shortens long texts, and leaves out members that are large or of
 * the wrong type.
 */
export function readHandshakeResult(method: string, result: Buffer) {
  const leftOut: string[] = []
  const isSmall = result.length <= maxHandshake
  const body = isSmall ? Json.raw<Record<string, unknown>>(result).value : smallBody(result, leftOut)
  const serverInfo = withShortTexts(asRecord(body._meta)[metaKeys.serverInfo] ?? body.serverInfo, leftOut)
  const advice = typeof body.instructions === 'string' ? body.instructions : undefined
  const instructions = advice && advice.length > maxInstructionsLength ? shorten(advice, maxInstructionsLength) : advice
  const findings: ServerFinding[] = []
  const find = (finding: Omit<ServerFinding, 'method'>) =>
    findings.push({ ...finding, method, message: `${method}: ${finding.message}` })
  if (advice && advice.length > maxAdvice) {
    const size = `${withCommas(advice.length)} characters`
    const message = `the instructions have ${size}; clients get the first ${withCommas(maxAdvice)} (a fixed limit).`
    find({ kind: 'long-text', message, count: 1, limit: maxAdvice })
  }
  if (leftOut.length > 0) {
    const message = `members that are too large are shortened or left out: ${joinNames(leftOut, maxNamedMembers)}.`
    find({ kind: 'large-handshake', message, count: leftOut.length, limit: maxMember })
  }
  const invalid = invalidParts(body)
  if (invalid.length > 0) {
    const lists = 'Without "capabilities", none of its tools, resources and prompts are listed.'
    const message = `missing or invalid members are left out: ${joinNames(invalid, maxNamedMembers)}.`
    const isEmpty = !isRecord(body.capabilities)
    find({ kind: 'malformed-handshake', message: isEmpty ? `${message} ${lists}` : message, count: invalid.length })
  }
  const described: ServerDescription = {
    ...{ serverInfo, capabilities: asRecord(body.capabilities), instructions },
    ...(findings.length > 0 && { findings }),
  }
  return { body, described }
}

/** The body of a large result, without unknown members, and without large members of its members. */
function smallBody(result: Buffer, leftOut: string[]): Readonly<Record<string, unknown>> {
  const small = new Map<string, unknown>()
  walk(result, (name, start, end) => {
    if (!handshakeMembers.has(name)) return true
    const value = result.subarray(start, end)
    const fits = value.length <= maxMember || name === 'instructions'
    small.set(name, fits ? Json.raw(value).value : smallMembers(name, value, leftOut))
    return true
  })
  return Object.fromEntries(small)
}

const handshakeMembers: ReadonlySet<string> = new Set([
  ...['protocolVersion', 'supportedVersions', 'capabilities', 'serverInfo', 'instructions', '_meta'],
])

function smallMembers(outer: string, text: Buffer, leftOut: string[]): Readonly<Record<string, unknown>> {
  const small = new Map<string, unknown>()
  let room = maxHandshake
  walk(text, (name, start, end) => {
    const fits = end - start <= maxMember
    room -= name.length + Math.min(maxMember, end - start)
    if (room > 0 && fits) small.set(name, Json.raw(text.subarray(start, end)).value)
    // A capability whose details are left out is still offered.
    else if (room > 0 && outer === 'capabilities') small.set(name, {})
    if (room <= 0 || !fits) leftOut.push(`${outer}.${name}`)
    return room > 0
  })
  return Object.fromEntries(small)
}

function withShortTexts(serverInfo: unknown, leftOut: string[]): Readonly<Record<string, unknown>> {
  const short = Object.entries(asRecord(serverInfo)).map(([name, value]) => {
    if (typeof value !== 'string' || value.length <= maxInfoText) return [name, value]
    leftOut.push(`serverInfo.${name}`)
    return [name, shorten(value, maxInfoText)]
  })
  return Object.fromEntries(short)
}

/** The members of the wrong type. Many servers write a member that they do not have as null. */
function invalidParts({ capabilities, serverInfo, instructions, _meta }: Readonly<Record<string, unknown>>): string[] {
  const isValid = {
    capabilities: isRecord(capabilities),
    serverInfo: isRecord(asRecord(_meta)[metaKeys.serverInfo] ?? serverInfo ?? {}),
    instructions: typeof (instructions ?? '') === 'string',
  }
  return Object.entries(isValid).flatMap(([name, valid]) => (valid ? [] : [name]))
}

const joinNames = (names: readonly string[], max: number) =>
  names
    .slice(0, max)
    .map((name) => quote(name))
    .join(', ') + (names.length > max ? ', …' : '')
