import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { type Caller, type Capabilities, knownCapabilities, type LogLevel, logLevels } from '../../core/call.ts'
import type { Json } from '../../json/json.ts'
import { decimalForm, ExactNumber } from '../../json/parse-json.ts'
import { isRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import { decodeHeaderValue, headerText, type ParamHeader, valueAt } from '../../wire/param-headers.ts'
import { headerNames, metaKeys, modernErrors, modernRevision, nameField } from '../../wire/revisions.ts'
import { capabilitiesFault } from '../calls/client-capabilities.ts'
import { HttpError, rpcCodes } from '../errors.ts'
import type { InboundNotification, InboundRequest, Params } from '../inbound-message.ts'

/** What a stateless client declares in the `_meta` of each request. */
export interface RequestEnvelope {
  readonly version: string
  readonly capabilities: Capabilities
  readonly client: { readonly name: string; readonly version: string } | undefined
  readonly logLevel: LogLevel | undefined
}

/** Whether a message claims to use the stateless protocol, which it does if its `_meta` contains a version. */
export const claims = (params: Params): boolean => isRecord(params._meta) && metaKeys.protocolVersion in params._meta

/** Reads a request's envelope. Throws an error that names the first invalid key. */
function readEnvelope(params: Params): RequestEnvelope {
  const meta = params._meta as Record<string, unknown>
  const fault = envelopeFault(meta)
  if (fault !== undefined) throw invalidEnvelope(fault)
  return {
    version: meta[metaKeys.protocolVersion] as string,
    capabilities: knownCapabilities(meta[metaKeys.clientCapabilities] as Capabilities),
    client: meta[metaKeys.clientInfo] as RequestEnvelope['client'],
    logLevel: meta[metaKeys.logLevel] as LogLevel | undefined,
  }
}

/** Reads the version from a notification. Nothing else is required in a notification's envelope. */
function readClaim(params: Params): string {
  const version = (params._meta as Record<string, unknown>)[metaKeys.protocolVersion]
  if (typeof version !== 'string') throw invalidEnvelope({ key: metaKeys.protocolVersion, problem: 'must be a string' })
  return version
}

type Fault = Record<'key' | 'problem', string>

const invalidEnvelope = (fault: Fault) =>
  new HttpError(400, rpcCodes.params, `Invalid "_meta": ${fault.key} ${fault.problem}.`, {
    data: { envelope: fault },
  })

const structuredCapabilities = ['experimental', 'sampling', 'elicitation', 'roots', 'extensions']

/** Finds the first problem in the envelope. Missing keys are reported before malformed ones. */
export function envelopeFault(meta: Readonly<Record<string, unknown>>): Fault | undefined {
  for (const key of [metaKeys.protocolVersion, metaKeys.clientCapabilities]) {
    if (!(key in meta)) return { key, problem: 'missing' }
  }
  const { [metaKeys.protocolVersion]: version, [metaKeys.clientCapabilities]: capabilities } = meta
  const { [metaKeys.clientInfo]: client, [metaKeys.logLevel]: level } = meta
  if (typeof version !== 'string') return { key: metaKeys.protocolVersion, problem: 'must be a string' }
  if (!isRecord(capabilities)) return { key: metaKeys.clientCapabilities, problem: 'must be an object' }
  for (const name of structuredCapabilities) {
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

/** The caller of a stateless request. Requests of one principal's client program share a session. */
export function statelessCaller(base: Omit<Caller, 'session' | 'capabilities'>, envelope: RequestEnvelope): Caller {
  const { capabilities, client } = envelope
  const endpoint = base.endpoint === undefined ? [] : [base.endpoint]
  const key = JSON.stringify([base.principal, client?.name, client?.version, ...endpoint])
  const session = `modern-${hash('sha256', key, 'base64url').slice(0, 22)}`
  return { ...base, session, capabilities, client: client?.name }
}

/*
 * Over HTTP, headers repeat parts of the body. Intermediaries route by the headers and servers act on the body, so both
 * must agree. The protocol defines the order of the checks. stdio has no headers.
 */

/** Returns a request's envelope. Throws if the envelope or the headers are invalid. */
export function validateRequest(request: InboundRequest, headers?: IncomingHttpHeaders): RequestEnvelope {
  const { method, params } = request
  const envelope = readEnvelope(params)
  if (headers !== undefined) checkAgreement(headers, method, envelope.version)
  checkVersion(envelope.version)
  if (headers === undefined) return envelope
  if (headers[headerNames.version] === undefined) throw missingHeader('MCP-Protocol-Version', envelope.version)
  if (headers[headerNames.method] === undefined) throw missingHeader('Mcp-Method', method)
  checkName(headers, method, params)
  return envelope
}

/** Throws if the headers and the body disagree. A notification may omit the headers. */
export function validateNotification({ method, params }: InboundNotification, headers?: IncomingHttpHeaders): void {
  const claimed = claims(params) ? readClaim(params) : undefined
  if (headers !== undefined) checkAgreement(headers, method, claimed)
  checkVersion(claimed ?? headerValue(headers?.[headerNames.version]) ?? modernRevision)
}

/** Throws unless the headers repeat those arguments that the tool's schema declares as headers. */
export function checkParamHeaders(headers: IncomingHttpHeaders, params: readonly ParamHeader[], args: Json): void {
  for (const declared of params) {
    // Parse the arguments exactly only here: that takes a while for large ones, and few schemas declare headers.
    const value = valueAt(args.exact, declared.path)
    const text = headerText(value)
    const given = headerValue(headers[declared.header])
    // A header whose argument is missing is ignored. An integer beyond 2^53 is checked separately.
    if (text === undefined) {
      checkLongNumber(declared.header, given, value)
      continue
    }
    if (given === undefined) throw missingHeader(declared.header, text)
    const decoded = decodeHeaderValue(given)
    if (decoded === undefined || !isSameArgument(declared, decoded, text))
      throw headerMismatch(declared.header, given, text)
  }
}

/** Checks the header for an integer beyond 2^53. The header is optional, but if it is given it must match exactly. */
function checkLongNumber(header: string, given: string | undefined, value: unknown): void {
  const text = value instanceof ExactNumber ? value.source : typeof value === 'number' ? String(value) : undefined
  if (given === undefined || text === undefined) return
  if (decimalForm(decodeHeaderValue(given) ?? '') !== decimalForm(text)) throw headerMismatch(header, given, text)
}

const decimalNumber = /^-?\d+(\.\d+)?$/

/** Compares a header with its argument. Integers are compared by value: 42.0 equals 42. */
function isSameArgument({ type }: ParamHeader, decoded: string, text: string): boolean {
  if (type === 'integer' && decimalNumber.test(decoded)) return decimalForm(decoded) === decimalForm(text)
  return decoded === text.toWellFormed()
}

function checkAgreement(headers: IncomingHttpHeaders, method: string, version: string | undefined): void {
  const named = headerValue(headers[headerNames.version])
  if (named !== undefined && version !== undefined && named !== version) {
    throw headerMismatch('MCP-Protocol-Version', named, version)
  }
  const called = headerValue(headers[headerNames.method])
  if (called !== undefined && called !== method) throw headerMismatch('Mcp-Method', called, method)
}

function checkVersion(requested: string): void {
  if (requested === modernRevision) return
  const sentence = `The revision ${quote(requested)} is not supported: use ${modernRevision}.`
  const data = { supported: [modernRevision], requested }
  throw new HttpError(400, modernErrors.unsupportedVersion, sentence, { data })
}

function checkName(headers: IncomingHttpHeaders, method: string, params: Params): void {
  const field = nameField(method)
  if (field === undefined) return
  const value = params[field]
  const given = headerValue(headers[headerNames.name])
  // Do not report an invalid name here: invalid params are rejected later.
  if (given === undefined) {
    if (typeof value === 'string') throw missingHeader('Mcp-Name', value)
    return
  }
  const decoded = decodeHeaderValue(given)
  const disagrees = typeof value === 'string' && decoded !== value.toWellFormed()
  if (decoded === undefined || disagrees) throw headerMismatch('Mcp-Name', given, String(value))
}

const headerValue = (header: string | string[] | undefined): string | undefined =>
  typeof header === 'string' ? header.trim() : header?.join(', ')

const missingHeader = (header: string, body: string) =>
  disagreement(`The ${header} header is missing: it must match the body.`, '(missing)', body)

const headerMismatch = (header: string, given: string, body: string) =>
  disagreement(`The ${header} header does not match the body.`, given, body)

const disagreement = (sentence: string, header: string, body: string) =>
  new HttpError(400, modernErrors.headerMismatch, sentence, {
    data: { mismatch: { header, body: body.slice(0, 200) } },
  })
