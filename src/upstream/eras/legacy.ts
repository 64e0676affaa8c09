import type { Capabilities } from '../../core/capabilities.ts'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import type { Log } from '../../core/log.ts'
import { isKnownRevision, latestLegacy } from '../../wire/revisions.ts'
import type { Connection } from '../connection.ts'
import { asObject, type Identity, type Introduction } from '../introduction.ts'

export interface GreetOptions {
  readonly server: string
  readonly identity: Identity
  /** Those of whoever the line is for. */
  readonly capabilities: Capabilities
  readonly log: Log
  readonly signal: AbortSignal
}

/** The handshake of the era with sessions. A revision that we do not know is a warning, not a failure (F5). */
export async function initialize(connection: Connection, options: GreetOptions): Promise<Introduction> {
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
    serverInfo: asObject(body.serverInfo),
    capabilities: asObject(body.capabilities),
    ...(typeof body.instructions === 'string' && { instructions: body.instructions }),
  }
}
