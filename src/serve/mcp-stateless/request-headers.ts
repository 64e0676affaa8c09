import type { IncomingHttpHeaders } from 'node:http'
import { decimalForm, ExactNumber } from '../../json/exact-number.ts'
import type { Json } from '../../json/json.ts'
import { quote } from '../../lib/message-text.ts'
import {
  declaredParamHeaders,
  decodeHeaderValue,
  headerText,
  type ParamHeader,
  valueAt,
} from '../../wire/param-headers.ts'
import { headerNames, modernErrors, modernRevision, nameField } from '../../wire/revisions.ts'
import { HttpError } from '../errors.ts'
import type { InboundNotification, InboundRequest, Params } from '../inbound-message.ts'
import { claims, type RequestEnvelope, readClaim, readEnvelope } from './envelope.ts'

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
  if (headers[headerNames.version] === undefined) throw missing('MCP-Protocol-Version', envelope.version)
  if (headers[headerNames.method] === undefined) throw missing('Mcp-Method', method)
  checkName(headers, method, params)
  return envelope
}

/** Throws if the headers and the body disagree. A notification may omit the headers. */
export function validateNotification({ method, params }: InboundNotification, headers?: IncomingHttpHeaders): void {
  const claimed = claims(params) ? readClaim(params) : undefined
  if (headers !== undefined) checkAgreement(headers, method, claimed)
  checkVersion(claimed ?? textOf(headers?.[headerNames.version]) ?? modernRevision)
}

/** Throws unless the headers repeat those arguments that the tool's schema declares as headers. */
export function checkParamHeaders(headers: IncomingHttpHeaders, inputSchema: unknown, args: Json): void {
  for (const declared of declaredParamHeaders(inputSchema)) {
    // Parse the arguments exactly only here: that takes a while for large ones, and few schemas declare headers.
    const value = valueAt(args.exact, declared.path)
    const text = headerText(value)
    const given = textOf(headers[declared.header])
    // A header whose argument is missing is ignored. An integer beyond 2^53 is checked separately.
    if (text === undefined) {
      checkLongNumber(declared.header, given, value)
      continue
    }
    if (given === undefined) throw missing(declared.header, text)
    const decoded = decodeHeaderValue(given)
    if (decoded === undefined || !isSame(declared, decoded, text)) throw mismatch(declared.header, given, text)
  }
}

/** Checks the header for an integer beyond 2^53. The header is optional, but if it is given it must match exactly. */
function checkLongNumber(header: string, given: string | undefined, value: unknown): void {
  const text = value instanceof ExactNumber ? value.source : typeof value === 'number' ? String(value) : undefined
  if (given === undefined || text === undefined) return
  if (decimalForm(decodeHeaderValue(given) ?? '') !== decimalForm(text)) throw mismatch(header, given, text)
}

const decimal = /^-?\d+(\.\d+)?$/

/** Compares a header with its argument. Integers are compared by value: 42.0 equals 42. */
function isSame({ type }: ParamHeader, decoded: string, text: string): boolean {
  if (type === 'integer' && decimal.test(decoded)) return decimalForm(decoded) === decimalForm(text)
  return decoded === text.toWellFormed()
}

function checkAgreement(headers: IncomingHttpHeaders, method: string, version: string | undefined): void {
  const named = textOf(headers[headerNames.version])
  if (named !== undefined && version !== undefined && named !== version) {
    throw mismatch('MCP-Protocol-Version', named, version)
  }
  const called = textOf(headers[headerNames.method])
  if (called !== undefined && called !== method) throw mismatch('Mcp-Method', called, method)
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
  const given = textOf(headers[headerNames.name])
  // Do not report an invalid name here: invalid params are rejected later.
  if (given === undefined) {
    if (typeof value === 'string') throw missing('Mcp-Name', value)
    return
  }
  const decoded = decodeHeaderValue(given)
  const disagrees = typeof value === 'string' && decoded !== value.toWellFormed()
  if (decoded === undefined || disagrees) throw mismatch('Mcp-Name', given, String(value))
}

const textOf = (header: string | string[] | undefined): string | undefined =>
  typeof header === 'string' ? header.trim() : header?.join(', ')

const missing = (header: string, body: string) =>
  disagreement(`The ${header} header is missing: it must match the body.`, '(missing)', body)

const mismatch = (header: string, given: string, body: string) =>
  disagreement(`The ${header} header does not match the body.`, given, body)

const disagreement = (sentence: string, header: string, body: string) =>
  new HttpError(400, modernErrors.headerMismatch, sentence, {
    data: { mismatch: { header, body: body.slice(0, 200) } },
  })
