import type { ServerConfig } from '../../config/schema.ts'
import type { ToolwayError } from '../../core/errors.ts'
import type { Health, SourceStatus } from '../../core/source-status.ts'
import { isKnownRevision, latestLegacy } from '../../wire/revisions.ts'
import type { ConnectionPool } from '../connection/connection-pool.ts'
import type { HandshakeResult } from '../connection/handshake.ts'
import { hidesEveryTool } from '../listing/definitions.ts'
import type { ServerListing } from '../listing/server-listing.ts'

/** The facts that determine a server's health. */
export interface ServerCondition {
  readonly disabled: boolean
  /** Paused by an operator. */
  readonly paused: boolean
  readonly connected: boolean
  /** Why it cannot be reached, and the milliseconds until the next attempt. */
  readonly failure: ToolwayError | undefined
  readonly pauseMs: number
  /** Why its last connection was lost. */
  readonly lost: ToolwayError | undefined
  /** Why its listing could not be fetched, and which lists failed. */
  readonly listFailure: ToolwayError | undefined
  readonly missing: readonly string[]
  /** A problem found by health checks although it responds. */
  readonly degradation: string | undefined
  /** The protocol version of the server, if Toolway does not know it. */
  readonly unknownProtocol: string | undefined
  /** Its first connection or listing in this run is under way. */
  readonly starting: boolean
  /** Whether it was fetched in this run. */
  readonly heard: boolean
  /** When the listing was fetched; undefined without one. */
  readonly knownSince: number | undefined
}

interface Assessment extends Pick<SourceStatus, 'heldBack'> {
  readonly health: Health
  readonly reason: string
}

/** State of a server's circuit breaker, and why it opened. */
export interface BreakerCondition {
  readonly state: SourceStatus['breaker']
  readonly reason?: string
  readonly retryAfterMs?: number
}

/** The health of a server; an open breaker makes it unhealthy, since calls are rejected. */
export function assessHealth(server: ServerCondition, breaker: BreakerCondition): Assessment {
  const assessment = withUnknownProtocol(assessServer(server), server)
  if (breaker.state === 'closed' || refuses.has(assessment.health)) return assessment
  const { reason = 'calls failed', retryAfterMs = 0 } = breaker
  if (breaker.state === 'half-open')
    return {
      health: 'degraded',
      reason: `Circuit breaker half-open (it opened because ${reason}); the next call tries it.`,
    }
  const next = ` Next attempt in ${Math.ceil(retryAfterMs / 1000)} s.`
  return { health: 'unhealthy', reason: `Circuit breaker open: ${reason}.${next}`, heldBack: true }
}

/** A server with an unknown protocol may work, or misread every call (F5). */
function withUnknownProtocol(assessment: Assessment, { unknownProtocol }: ServerCondition): Assessment {
  if (assessment.health !== 'healthy' || unknownProtocol === undefined) return assessment
  const known = `Toolway asked for ${latestLegacy}`
  return { health: 'degraded', reason: `Unknown protocol version ${unknownProtocol}; ${known}. Calls may fail.` }
}

/** States in which no call is sent anyway, for a reason of their own. */
const refuses: ReadonlySet<Health> = new Set(['disabled', 'needs-auth', 'unhealthy'])

/** Never "healthy" because of an empty or outdated listing. */
function assessServer(server: ServerCondition): Assessment {
  if (server.disabled) return { health: 'disabled', reason: 'disabled in the configuration' }
  if (server.paused) return { health: 'disabled', reason: 'paused by an operator until it is enabled or restarted' }
  if (server.connected) return assessConnected(server)
  if (server.failure?.code === 'AUTH_REQUIRED') return { health: 'needs-auth', reason: server.failure.message }
  if (server.failure) return { health: 'unhealthy', reason: `${server.failure.message}${again(server.pauseMs)}` }
  if (server.lost) return { health: 'degraded', reason: `${server.lost.message} The next call reconnects.` }
  if (server.starting) return { health: 'starting', reason: 'connecting for the first time in this run' }
  if (server.heard) return { health: 'healthy', reason: 'idle; the next call connects' }
  if (server.knownSince === undefined) return { health: 'stale', reason: 'not connected yet' }
  return { health: 'stale', reason: `not connected yet; listing of ${new Date(server.knownSince).toISOString()}` }
}

function assessConnected({
  failure,
  pauseMs,
  listFailure,
  missing,
  degradation,
  starting,
}: ServerCondition): Assessment {
  const degraded = (reason: string): Assessment => ({ health: 'degraded', reason })
  if (listFailure?.code === 'AUTH_REQUIRED') return { health: 'needs-auth', reason: listFailure.message }
  // One of several principals may lack a grant, which does not affect the others.
  if (failure && failure.code !== 'AUTH_REQUIRED')
    return degraded(`No new connections: ${failure.message}${again(pauseMs)}`)
  if (listFailure) return degraded(`Listing failed: ${listFailure.message}`)
  if (missing.length > 0) return degraded(`Failed: ${missing.join(', ')}.`)
  if (starting) return { health: 'starting', reason: 'connected; fetching its lists' }
  return degradation === undefined ? { health: 'healthy', reason: '' } : degraded(degradation)
}

const again = (pauseMs: number): string => (pauseMs > 0 ? ` Next attempt in ${Math.ceil(pauseMs / 1000)} s.` : '')

interface StatusParts {
  readonly config: ServerConfig
  readonly pool: Pick<ConnectionPool, 'connected' | 'failure' | 'pauseMs' | 'lost'>
  readonly listing: Pick<ServerListing, 'fetched' | 'missing' | 'failure' | 'descriptors'>
  /** The last handshake result, from this run or the cached listing. */
  readonly handshake: HandshakeResult | undefined
  /** Its first connection or listing in this run is under way. */
  readonly starting: boolean
  readonly degradation: string | undefined
  readonly paused: boolean
  readonly since: number
  readonly latencyMs: number | undefined
  readonly breaker: BreakerCondition
}

export function serverStatus(parts: StatusParts): SourceStatus {
  const { config, pool, listing, handshake: known, starting, degradation, paused, since, latencyMs, breaker } = parts
  const { connected, failure, pauseMs, lost } = pool
  const { fetched: heard, missing, failure: listFailure, descriptors } = listing
  const line = { connected, failure, pauseMs, lost, starting, degradation }
  const unknownProtocol =
    known && !isKnownRevision(known.protocolVersion, known.era) ? excerpt(known.protocolVersion) : undefined
  const knowledge = { unknownProtocol, listFailure, missing, heard, knownSince: descriptors?.fetchedAt }
  const lastError = (failure ?? lost)?.message
  const assessment = assessHealth({ disabled: config.disabled, paused, ...line, ...knowledge }, breaker)
  const hidden = assessment.reason === '' && hidesEveryTool(config, descriptors?.tools ?? [])
  return {
    ...assessment,
    ...(hidden && { reason: nothingToRead }),
    since,
    description: text(config.description) ?? text(known?.serverInfo.title) ?? text(known?.serverInfo.name) ?? '',
    transport: config.transport,
    ...(known && { era: known.era, protocolVersion: known.protocolVersion }),
    ...(lastError !== undefined && { lastError }),
    ...(latencyMs !== undefined && { latencyMs: Math.round(latencyMs * 100) / 100 }),
    breaker: breaker.state,
  }
}

/** Chosen by the server and shown to people: bounded and quoted. */
const excerpt = (version: string): string => JSON.stringify(version.slice(0, 40))

const nothingToRead =
  'The server is read-only, and none of its tools is known to be read-only, so none can be used: list read-only tools in readTools, or set trustAnnotations to trust its readOnlyHint.'

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
