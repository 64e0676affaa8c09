import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { type Caller, type Capabilities, knownCapabilities, type LogLevel, logLevels } from '../../core/call.ts'
import { isRecord } from '../../lib/is-record.ts'
import { headerNames, isModernVersion, latestLegacy, metaKeys, modernErrors } from '../../wire/revisions.ts'
import { capabilitiesFault } from '../calls/client-capabilities.ts'
import { HttpError, rpcCodes } from '../errors.ts'
import type { InboundMessage, InboundRequest, Params } from '../inbound-message.ts'

/** What a stateless client declares in the `_meta` of each request. */
export interface RequestEnvelope {
  readonly version: string
  readonly capabilities: Capabilities
  readonly client: { readonly name: string; readonly version: string } | undefined
  readonly logLevel: LogLevel | undefined
}

/** Whether a message claims to use the stateless protocol, which it does if its `_meta` contains a version. */
export const claims = (params: Params): boolean => isRecord(params._meta) && metaKeys.protocolVersion in params._meta

/** Whether the claim is valid. A valid claim counts even if the method exists only in the legacy protocol. */
function claimsRightly(params: Params): boolean {
  const { _meta } = params
  if (!isRecord(_meta)) return false
  const version = _meta[metaKeys.protocolVersion]
  return typeof version === 'string' && isModernVersion(version) && faultOf(_meta) === undefined
}

/** Reads a request's envelope. Throws an error that names the first invalid key. */
export function readEnvelope(params: Params): RequestEnvelope {
  const meta = params._meta as Record<string, unknown>
  const fault = faultOf(meta)
  if (fault !== undefined) throw invalidEnvelope(fault)
  return {
    version: meta[metaKeys.protocolVersion] as string,
    capabilities: knownCapabilities(meta[metaKeys.clientCapabilities] as Capabilities),
    client: meta[metaKeys.clientInfo] as RequestEnvelope['client'],
    logLevel: meta[metaKeys.logLevel] as LogLevel | undefined,
  }
}

/** Reads the version from a notification. Nothing else is required in a notification's envelope. */
export function readClaim(params: Params): string {
  const version = (params._meta as Record<string, unknown>)[metaKeys.protocolVersion]
  if (typeof version !== 'string') throw invalidEnvelope({ key: metaKeys.protocolVersion, problem: 'must be a string' })
  return version
}

/** The error for a request whose header names the stateless revision but whose body does not. */
function missingEnvelope({ id, params: { _meta } }: InboundRequest): HttpError {
  const required = [metaKeys.protocolVersion, metaKeys.clientCapabilities]
  const missing = isRecord(_meta) ? required.filter((key) => !(key in _meta)) : ['_meta']
  const sentence = `The MCP-Protocol-Version header names a stateless revision, but the request lacks ${missing.join(' and ')}.`
  return new HttpError(400, rpcCodes.params, sentence, { id, data: { envelope: { missing } } })
}

interface Fault {
  readonly key: string
  readonly problem: string
}

const invalidEnvelope = (fault: Fault) =>
  new HttpError(400, rpcCodes.params, `Invalid "_meta": ${fault.key} ${fault.problem}.`, {
    data: { envelope: fault },
  })

const structured = ['experimental', 'sampling', 'elicitation', 'roots', 'extensions']

/** Finds the first problem in the envelope. Missing keys are reported before malformed ones. */
function faultOf(meta: Readonly<Record<string, unknown>>): Fault | undefined {
  for (const key of [metaKeys.protocolVersion, metaKeys.clientCapabilities]) {
    if (!(key in meta)) return { key, problem: 'missing' }
  }
  const { [metaKeys.protocolVersion]: version, [metaKeys.clientCapabilities]: capabilities } = meta
  const { [metaKeys.clientInfo]: client, [metaKeys.logLevel]: level } = meta
  if (typeof version !== 'string') return { key: metaKeys.protocolVersion, problem: 'must be a string' }
  if (!isRecord(capabilities)) return { key: metaKeys.clientCapabilities, problem: 'must be an object' }
  for (const name of structured) {
    if (capabilities[name] === undefined || isRecord(capabilities[name])) continue
    return { key: `${metaKeys.clientCapabilities}.${name}`, problem: 'must be an object' }
  }
  const tooMuch = capabilitiesFault(capabilities)
  if (tooMuch !== undefined) return { key: metaKeys.clientCapabilities, problem: tooMuch }
  const named = isRecord(client) && typeof client.name === 'string' && typeof client.version === 'string'
  if (client !== undefined && !named) return { key: metaKeys.clientInfo, problem: 'must have a name and a version' }
  if (level === undefined || (logLevels as readonly unknown[]).includes(level)) return undefined
  return { key: metaKeys.logLevel, problem: `must be one of ${logLevels.join(', ')}` }
}

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

/** The caller of a stateless request. Requests of one principal's client program share a session. */
export function statelessCaller(base: Omit<Caller, 'session' | 'capabilities'>, envelope: RequestEnvelope): Caller {
  const { capabilities, client } = envelope
  const key = JSON.stringify([base.principal, client?.name, client?.version])
  return { ...base, session: `modern-${hash('sha256', key, 'base64url').slice(0, 22)}`, capabilities }
}
