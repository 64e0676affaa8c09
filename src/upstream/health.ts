import type { ToolwayError } from '../core/errors.ts'
import type { Health } from '../core/source.ts'

/** All that a server's health is judged by. */
export interface Condition {
  readonly disabled: boolean
  readonly connected: boolean
  /** Why its line could not be opened. */
  readonly failure: ToolwayError | undefined
  /** Why its line went down. */
  readonly lost: ToolwayError | undefined
  /** Why it could not be listed, or which of its lists it could not give. */
  readonly listFailure: ToolwayError | undefined
  readonly missing: readonly string[]
  /** Whether it has been heard in this run. */
  readonly heard: boolean
  /** When it said what is known of it; undefined when nothing is known. */
  readonly knownSince: number | undefined
}

/** Health that tells the truth: never "healthy" on the strength of an empty list or an old one. */
export function judge(server: Condition): { health: Health; reason: string } {
  if (server.disabled) return { health: 'disabled', reason: 'disabled in the configuration' }
  if (server.connected) return judgeConnected(server)
  if (server.failure) return { health: 'unhealthy', reason: server.failure.message }
  if (server.lost) return { health: 'degraded', reason: `${server.lost.message} The next call opens it again.` }
  if (server.heard) return { health: 'healthy', reason: 'asleep; the next call wakes it' }
  if (server.knownSince === undefined) return { health: 'stale', reason: 'not connected yet' }
  return { health: 'stale', reason: `not connected yet; known as of ${new Date(server.knownSince).toISOString()}` }
}

function judgeConnected({ listFailure, missing }: Condition): { health: Health; reason: string } {
  if (listFailure) return { health: 'degraded', reason: `It could not say what it offers: ${listFailure.message}` }
  if (missing.length > 0) return { health: 'degraded', reason: `It could not answer ${missing.join(', ')}.` }
  return { health: 'healthy', reason: '' }
}
