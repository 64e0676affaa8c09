import type { ServerConfig } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { Health, ServerFinding, SourceStatus } from '../../core/source-status.ts'
import { withoutHidden } from '../../lib/characters.ts'
import { quote, shorten } from '../../lib/message-text.ts'
import { isKnownRevision, latestLegacy } from '../../wire/revisions.ts'
import type { ConnectionPool } from '../connection/connection-pool.ts'
import type { HandshakeResult } from '../connection/handshake.ts'
import { hidesEveryTool } from '../listing/definitions.ts'
import { withCommas } from '../listing/list-reader.ts'
import type { ServerListing } from '../listing/server-listing.ts'
import type { BreakerCondition } from '../server-options.ts'
import { LimitExceeded } from '../transports/transport-errors.ts'

/** The data from which a server's health is determined. */
export interface ServerCondition {
  readonly config: ServerConfig
  readonly paused: boolean
  readonly pool: Pick<ConnectionPool, 'connected' | 'current' | 'failure' | 'pauseMs' | 'lost' | 'personal'>
  readonly listing: Pick<ServerListing, 'fetched' | 'missing' | 'failure' | 'descriptors'>
  /** The last handshake result, from this run or from the cached listing. */
  readonly handshake: HandshakeResult | undefined
  /** Whether the first connection or the first listing in this run is under way. */
  readonly starting: boolean
  /** A problem that health checks found although the server is responding. */
  readonly degradation: string | undefined
  readonly breaker: BreakerCondition
}

interface Assessment extends Pick<SourceStatus, 'heldBack'> {
  readonly health: Health
  readonly reason: string
}

/** The health of a server. An open circuit breaker makes it unhealthy, because calls are rejected. */
export function assessHealth(server: ServerCondition): Assessment {
  const { breaker } = server
  const assessment = withUnknownProtocol(assessServer(server), server)
  if (breaker.state === 'closed' || refuses.has(assessment.health)) return assessment
  const { reason = 'calls failed', retryAfterMs = 0 } = breaker
  if (breaker.state === 'half-open')
    return degradedHealth(`Circuit breaker half-open (it opened because ${reason}); the next call tests the server.`)
  const next = ` Next attempt in ${Math.ceil(retryAfterMs / 1000)} s.`
  return { health: 'unhealthy', reason: `Circuit breaker open: ${reason}.${next}`, heldBack: true }
}

/** Marks a healthy server as degraded if its protocol revision is unknown: it may work, or misread every call (F5). */
function withUnknownProtocol(assessment: Assessment, { handshake }: ServerCondition): Assessment {
  if (assessment.health !== 'healthy' || !handshake) return assessment
  const { protocolVersion, era } = handshake
  if (isKnownRevision(protocolVersion, era)) return assessment
  const unknown = JSON.stringify(visibleLine(protocolVersion).slice(0, 40))
  return degradedHealth(`Unknown protocol version ${unknown}; Toolway requested ${latestLegacy}. Calls may fail.`)
}

const degradedHealth = (reason: string): Assessment => ({ health: 'degraded', reason })

/** States in which no calls are sent, regardless of the breaker. */
const refuses: ReadonlySet<Health> = new Set(['disabled', 'needs-auth', 'unhealthy'])

/** A server's health, apart from its breaker. A listing from an earlier run does not make a server "healthy". */
function assessServer(server: ServerCondition): Assessment {
  const { connected, failure, pauseMs, lost } = server.pool
  const { fetched, descriptors, missing } = server.listing
  if (server.config.disabled) return { health: 'disabled', reason: 'disabled in the configuration' }
  if (server.paused) return { health: 'disabled', reason: 'paused by an operator until it is enabled or restarted' }
  if (connected) return assessConnected(server)
  if (failure?.code === 'AUTH_REQUIRED') return { health: 'needs-auth', reason: failure.message }
  if (failure) return { health: 'unhealthy', reason: `${failure.message}${nextAttemptText(pauseMs)}` }
  if (lost) return degradedHealth(`${lost.message} The next call reconnects.`)
  if (server.starting) return { health: 'starting', reason: 'connecting for the first time since Toolway started' }
  if (fetched && missing.length > 0) return lacking(missing)
  if (fetched) return { health: 'healthy', reason: 'idle; the next call connects' }
  if (!descriptors) return { health: 'stale', reason: 'not connected yet' }
  return {
    health: 'stale',
    reason: `not connected yet; using the listing of ${new Date(descriptors.fetchedAt).toISOString()}`,
  }
}

function assessConnected({ pool, listing, degradation, starting }: ServerCondition): Assessment {
  const { failure, pauseMs } = pool
  const { failure: listFailure, missing } = listing
  if (listFailure?.code === 'AUTH_REQUIRED') return { health: 'needs-auth', reason: listFailure.message }
  // One of several principals may lack a grant, which does not affect the others. A connected listing is more reliable.
  if (failure?.code === 'AUTH_REQUIRED' && !pool.personal && !pool.current({}))
    return { health: 'needs-auth', reason: failure.message }
  if (failure && failure.code !== 'AUTH_REQUIRED')
    return degradedHealth(`Cannot open new connections: ${failure.message}${nextAttemptText(pauseMs)}`)
  if (listFailure) return degradedHealth(`Listing failed: ${listFailure.message}`)
  if (missing.length > 0) return lacking(missing)
  if (starting) return { health: 'starting', reason: 'connected; fetching its lists' }
  return degradation === undefined ? { health: 'healthy', reason: '' } : degradedHealth(degradation)
}

const lacking = (missing: ServerListing['missing']): Assessment =>
  degradedHealth(
    `Could not fetch these lists: ${missing.map(({ method, reason }) => `${method} (${reason})`).join(', ')}.`,
  )

const nextAttemptText = (pauseMs: number): string =>
  pauseMs > 0 ? ` Next attempt in ${Math.ceil(pauseMs / 1000)} s.` : ''

export function serverStatus(
  server: ServerCondition & {
    readonly since: number
    readonly latencyMs: number | undefined
    readonly findings: readonly ServerFinding[]
    /** Whether the scanner finds nothing in a text that the server wrote and that models read. */
    readonly isHarmless?: ((text: string) => boolean) | undefined
  },
): SourceStatus {
  const { config, pool, listing, handshake: known, latencyMs, findings, isHarmless = () => true } = server
  const assessment = assessHealth(server)
  const { title, name } = known?.serverInfo ?? {}
  const isShown = (text: string) => text !== '' && isHarmless(text)
  const hidden = assessment.health === 'healthy' && hidesEveryTool(config, listing.descriptors?.tools ?? [])
  return {
    ...assessment,
    reason: hidden ? noKnownReads(config) : assessment.reason,
    since: server.since,
    description: config.description || ([title, name].map(visibleLine).find(isShown) ?? ''),
    transport: config.transport,
    era: known?.era,
    protocolVersion: known && shorten(visibleLine(known.protocolVersion), maxVersion),
    lastError: (pool.failure ?? pool.lost)?.message,
    latencyMs: latencyMs === undefined ? undefined : Math.round(latencyMs * 100) / 100,
    breaker: server.breaker.state,
    ...(findings.length > 0 && { findings }),
  }
}

/** How much of a server's version is shown. Real ones are dates. */
const maxVersion = 100

export const noKnownReads = ({ trustAnnotations }: Pick<ServerConfig, 'trustAnnotations'>): string =>
  `The server is read-only, and none of its tools is known to be read-only, so none can be used: list read-only tools in readTools${trustAnnotations ? ', since the server marks none with readOnlyHint' : ', or set trustAnnotations to trust its readOnlyHint'}.`

/** A server's text about itself on one line, without hidden characters (B5). It becomes part of our own tools' descriptions. */
const visibleLine = (value: unknown): string =>
  typeof value === 'string' ? withoutHidden(value).replace(/\s+/g, ' ').trim() : ''

export const isDown = (health: Health): boolean => health === 'unhealthy' || health === 'needs-auth'

/** Remembers a server's health, and logs when it goes down and comes up. */
export class HealthLog {
  current: Health = 'stale'
  /** When the health became what it is. */
  since: number
  readonly #server: string
  readonly #clock: Pick<Clock, 'now'>
  readonly #log: Log
  #wasHealthy = false

  constructor(server: string, clock: Pick<Clock, 'now'>, log: Log) {
    this.#server = server
    this.#clock = clock
    this.#log = log
    this.since = clock.now()
  }

  record({ health, reason, transport, protocolVersion }: SourceStatus): void {
    if (health === this.current) return
    const server = this.#server
    this.since = this.#clock.now()
    if (isDown(health)) this.#log.warn({ server, reason }, `server is ${health}`)
    else if (isDown(this.current)) this.#log.info({ server, health }, 'server is up again')
    else if (health === 'healthy' && !this.#wasHealthy)
      this.#log.info({ server, transport, protocolVersion }, 'server is connected')
    this.#wasHealthy ||= health === 'healthy'
    this.current = health
  }
}

interface ExceededLimit {
  readonly limit: LimitExceeded
  readonly method: string
  count: number
  /** The entry that was called last. */
  entry: string
}

/** How many findings about lists are remembered as logged. */
const maxLogged = 256

/** What Toolway shortened, left out or refused of a server's messages. Logs each finding once. */
export class ServerFindings {
  readonly #server: string
  readonly #log: Log
  readonly #exceeded = new Map<string, ExceededLimit>()
  readonly #withoutCall = new Map<LimitExceeded['kind'], ServerFinding>()
  readonly #logged = new Set<string>()

  constructor(server: string, log: Log) {
    this.#server = server
    this.#log = log
  }

  /** Logs what is new in a listing. */
  listed(listing: ListingWithFindings): void {
    for (const finding of ofListing(listing)) this.#warn(finding)
  }

  /** Counts a result that exceeds a limit. Returns how many there were with this method. */
  exceeded(limit: LimitExceeded, method: string, entry: string): number {
    const key = `${limit.kind} ${method}`
    const known = this.#exceeded.get(key) ?? { limit, method, count: 0, entry }
    known.count++
    known.entry = entry
    this.#exceeded.set(key, known)
    if (known.count === 1) this.#warn(resultFinding(known))
    return known.count
  }

  /** Records a limit that was exceeded without a call that failed for it. Returns whether that is new. */
  exceededWithoutCall(limit: LimitExceeded): boolean {
    if (this.#withoutCall.has(limit.kind)) return false
    const finding = messageFinding(limit)
    this.#withoutCall.set(limit.kind, finding)
    this.#warn(finding)
    return true
  }

  of(
    listing: ListingWithFindings,
    { failure, lost }: Partial<Pick<ConnectionPool, 'failure' | 'lost'>>,
  ): readonly ServerFinding[] {
    const exceeded = [...this.#exceeded.values()].map(resultFinding)
    const found = [...ofListing(listing), ...exceeded, ...this.#withoutCall.values()]
    // A message that closed the connection is reported only here if it did not answer a call.
    const limit = exceededFinding(failure) ?? exceededFinding(lost)
    return limit && !found.some(({ kind }) => kind === limit.kind) ? [...found, limit] : found
  }

  #warn({ message, ...facts }: ServerFinding): void {
    const key = JSON.stringify([facts, message])
    if (this.#logged.has(key)) return
    if (this.#logged.size >= maxLogged) this.#logged.clear()
    this.#logged.add(key)
    const said = 'the server sent something that was shortened, left out or refused'
    this.#log.warn({ server: this.#server, ...facts, reason: message }, said)
  }
}

type ListingWithFindings = Pick<ServerListing, 'descriptors' | 'failure' | 'missing'>

function ofListing({ descriptors, failure, missing }: ListingWithFindings): readonly ServerFinding[] {
  return [descriptors?.findings ?? [], findingsOfFailed(missing), exceededFinding(failure) ?? []].flat()
}

/** The findings about lists that failed because a page exceeded a limit. */
export function findingsOfFailed(lists: ServerListing['missing']): readonly ServerFinding[] {
  return lists.flatMap(({ method, limit }) => {
    if (!limit) return []
    const finding = messageFinding(limit)
    return { ...finding, method, message: `${method}: ${finding.message}` }
  })
}

/** The finding for an error about a message that exceeds a limit; undefined for other errors. */
export function exceededFinding(thrown: unknown): ServerFinding | undefined {
  const limit = LimitExceeded.in(thrown)
  return limit && messageFinding(limit)
}

const limitTexts: Readonly<Record<LimitExceeded['kind'], (limit: number) => string>> = {
  'large-message': (limit) => `a message of more than ${limit / 1024 / 1024} MiB`,
  'deep-nesting': (limit) => `a message nested deeper than ${limit} levels`,
  'too-many-blocks': (limit) => `a result with more than ${withCommas(limit)} content blocks`,
  'too-many-values': (limit) => `a message with more than ${withCommas(limit)} values`,
  'stray-output': () => 'other output than MCP messages on stdout, which is only for these',
  'unusable-response': () => 'a response that is not valid JSON-RPC, or whose id is not that of a request',
  flood: (limit) => `notifications or other output faster than ${limit / 1024 / 1024} MiB a second`,
}

function messageFinding({ kind, limit, message }: LimitExceeded): ServerFinding {
  const sent = `The server sent ${limitTexts[kind](limit)}`
  if (kind === 'stray-output') return { kind, message: `${sent}: ${message}. It was ignored; log to stderr instead.` }
  if (kind === 'unusable-response') return { kind, message: `${sent}; it was ignored, so a call may have timed out.` }
  return { kind, limit, message: `${sent} (a fixed limit); ${kind === 'flood' ? 'it has to wait' : 'it was refused'}.` }
}

const resultFinding = ({ limit: { kind, limit }, method, count, entry }: ExceededLimit): ServerFinding => {
  const times = count === 1 ? 'once' : `${withCommas(count)} times`
  const message = `${method}: the server sent ${limitTexts[kind](limit)} (a fixed limit) ${times}, last for ${quote(entry)}; the call failed.`
  return { kind, method, limit, count, message }
}
