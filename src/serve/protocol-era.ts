import type { IncomingHttpHeaders } from 'node:http'
import { isRecord } from '../lib/is-record.ts'
import { headerNames, isModernVersion, latestLegacy, metaKeys, modernErrors } from '../wire/revisions.ts'
import { HttpError, rpcCodes } from './errors.ts'
import type { InboundMessage, InboundRequest, Params } from './inbound-message.ts'
import { claims, envelopeFault } from './mcp-stateless/envelope.ts'

/**
 * Decides which protocol a message uses. The body decides, except for notifications, which may omit the version. Throws
 * if the body and the header disagree.
 */
export function protocolOf(inbound: InboundMessage, headers: IncomingHttpHeaders = {}): 'legacy' | 'stateless' {
  if (inbound.kind === 'response') return 'legacy'
  const { params } = inbound
  const { [headerNames.version]: version } = headers
  const versionHeader = typeof version === 'string' ? version.trim() : undefined
  const modernHeader = versionHeader !== undefined && isModernVersion(versionHeader)
  if (inbound.kind === 'request' && modernHeader && !claims(params) && !/^\d{4}-\d{2}-\d{2}$/.test(versionHeader)) {
    const sentence = `The MCP-Protocol-Version header is not a protocol version: send a version such as ${latestLegacy}.`
    throw new HttpError(400, rpcCodes.params, sentence, { id: inbound.id })
  }
  if (inbound.kind === 'request' && inbound.method === 'initialize' && !claimsRightly(params)) {
    if (!modernHeader) return 'legacy'
    const sentence = `"initialize" opens a session, but revision ${versionHeader} has no sessions: omit "initialize", or send an older MCP-Protocol-Version.`
    const mismatch = { header: versionHeader, body: 'initialize' }
    throw new HttpError(400, modernErrors.headerMismatch, sentence, { id: inbound.id, data: { mismatch } })
  }
  if (claims(params)) return 'stateless'
  if (inbound.kind === 'request' && modernHeader) throw missingEnvelope(inbound)
  return modernHeader ? 'stateless' : 'legacy'
}

/** Whether the claim is valid. A valid claim counts even if the method exists only in the legacy protocol. */
function claimsRightly(params: Params): boolean {
  const { _meta } = params
  if (!isRecord(_meta)) return false
  const version = _meta[metaKeys.protocolVersion]
  return typeof version === 'string' && isModernVersion(version) && envelopeFault(_meta) === undefined
}

/** The error for a request whose header names the stateless revision but whose body does not. */
function missingEnvelope({ id, params: { _meta } }: InboundRequest): HttpError {
  const required = [metaKeys.protocolVersion, metaKeys.clientCapabilities]
  const missing = isRecord(_meta) ? required.filter((key) => !(key in _meta)) : ['_meta']
  const sentence = `The MCP-Protocol-Version header names a stateless revision, but the request lacks ${missing.join(' and ')}.`
  return new HttpError(400, rpcCodes.params, sentence, { id, data: { envelope: { missing } } })
}
