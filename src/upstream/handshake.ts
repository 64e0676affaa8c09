import { ToolwayError } from '../core/errors.ts'
import { Json } from '../core/json.ts'
import type { Log } from '../core/log.ts'
import { latestLegacy, legacyRevisions } from '../wire/revisions.ts'
import type { Connection } from './connection.ts'

/** What a server said about itself when the line was opened. */
export interface Introduction {
  readonly era: 'legacy'
  readonly protocolVersion: string
  readonly serverInfo: Readonly<Record<string, unknown>>
  readonly capabilities: Readonly<Record<string, unknown>>
  readonly instructions?: string
}

/** Introduces us and learns who the server is. A revision that we do not know is a warning, not a failure (F5). */
export async function shakeHands(
  connection: Connection,
  options: { server: string; version: string; log: Log; signal: AbortSignal },
): Promise<Introduction> {
  const { server, version, log, signal } = options
  const hello = { protocolVersion: latestLegacy, capabilities: {}, clientInfo: { name: 'toolway', version } }
  const answer = await connection.request({ method: 'initialize', params: () => Json.of(hello).bytes, signal })
  const body = Json.raw<Record<string, unknown>>(answer).value
  const { protocolVersion } = body
  if (typeof protocolVersion !== 'string') {
    throw new ToolwayError('SERVER_UNAVAILABLE', `${server} answered initialize without a protocol version.`, {
      server,
    })
  }
  if (!(legacyRevisions as readonly string[]).includes(protocolVersion)) {
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
    serverInfo: object(body.serverInfo),
    capabilities: object(body.capabilities),
    ...(typeof body.instructions === 'string' && { instructions: body.instructions }),
  }
}

const object = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
