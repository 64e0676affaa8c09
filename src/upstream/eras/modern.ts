import { ServerError } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import { headerNames, metaKeys, modernErrors } from '../../wire/modern.ts'
import { modernRevision } from '../../wire/revisions.ts'
import type { Connection } from '../connection.ts'
import { asObject, type Introduction } from '../introduction.ts'
import { modernMeta, standardHeaders } from '../phrase.ts'
import type { GreetOptions } from './legacy.ts'

/** An answer that only a server of the other era gives; it is no failure of the server. */
export class NotModern extends Error {
  override readonly name = 'NotModern'
}

/**
 * Asks a server what it offers in the stateless era. Only a list of versions proves that it speaks it: servers of the
 * other era answer with any error, and some answer an unknown method with an empty result.
 */
export async function discover(connection: Connection, options: GreetOptions): Promise<Introduction> {
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
    serverInfo: asObject(asObject(body._meta)[metaKeys.serverInfo] ?? body.serverInfo),
    capabilities: asObject(body.capabilities),
    ...(typeof instructions === 'string' && { instructions }),
  }
}

/** A server that refuses the version and then names the very same one wants to be asked once more. */
function again<T>(error: unknown, ask: () => Promise<T>): Promise<T> {
  if (!(error instanceof ServerError)) throw error
  const { code, data } = error.error.value
  const { supported } = asObject(data)
  if (code !== modernErrors.unsupportedVersion || !Array.isArray(supported) || !supported.includes(modernRevision))
    throw new NotModern()
  return ask()
}
