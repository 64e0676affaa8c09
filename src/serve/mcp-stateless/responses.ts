import { type RpcErrorObject, ServerError, ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { Json } from '../../json/json.ts'
import { members } from '../../json/json-text.ts'
import { isRecord } from '../../lib/is-record.ts'
import { splice } from '../../wire/bytes.ts'
import { AmbiguousMember, definedMembers } from '../../wire/check-members.ts'
import { toModern } from '../../wire/convert-result.ts'
import { type MemberRules, serverRequests } from '../../wire/defined-members.ts'
import { errorBytes, type Id, resultPieces } from '../../wire/message.ts'
import { latestLegacy, modernErrors } from '../../wire/revisions.ts'
import { missingCapabilities, missingCapabilityError } from '../calls/client-capabilities.ts'
import type { InputRequest } from '../calls/resumable-call.ts'
import { type EncodedResponse, failureOf, HttpError, legacyResourceNotFound, rpcCodes } from '../errors.ts'
import type { InboundRequest, Params } from '../inbound-message.ts'
import type { RequestEnvelope } from './envelope.ts'

/** Encodes an error. An HttpError keeps its status; other errors get 200, except for missing client capabilities. */
export function statelessErrorResponse(request: Failed, thrown: unknown, log: Log): EncodedResponse {
  const { id, method, params } = request
  const refusal = thrown instanceof ToolwayError ? thrown.cause : thrown
  if (refusal instanceof HttpError) return refusedResponse(id, refusal)
  if (thrown instanceof ServerError) return fromServer(request, thrown.error)
  const failure = failureOf(method, thrown, log)
  const { headers } = failure
  if ('result' in failure) return { message: resultPieces(id, toModern(failure.result)), headers }
  const error = Buffer.isBuffer(failure.error) ? failure.error : withResourceUri(failure.error, method, params)
  return { message: [errorBytes(id, error)], headers }
}

type Failed = Pick<InboundRequest, 'id' | 'method' | 'params'> & {
  readonly envelope: Pick<RequestEnvelope, 'capabilities'>
}

function refusedResponse(id: Id, { status, code, message, details: { data, headers } }: HttpError): EncodedResponse {
  return { message: [errorBytes(id, { code, message, data })], status, headers }
}

function fromServer({ id, envelope }: Failed, error: Json<RpcErrorObject>): EncodedResponse {
  const visits = visitsOf(error.value)
  if (visits !== undefined) {
    const missing = missingCapabilities(envelope.capabilities, visiting)
    if (missing !== undefined) return refusedResponse(id, missingCapabilityError(missing))
    return { message: resultPieces(id, [inputRequired(visits)]) }
  }
  const { code } = error.value
  if (code === legacyResourceNotFound) return { message: [errorBytes(id, withErrorCode(error.bytes, rpcCodes.params))] }
  return { message: [errorBytes(id, error.bytes)], status: code === modernErrors.missingCapability ? 400 : 200 }
}

/** Replaces an error's code and leaves all other bytes unchanged. */
function withErrorCode(error: Buffer, number: number): Buffer {
  const code = members(error)?.get('code')
  if (code === undefined) return error
  return splice(error, [[code, Buffer.from(String(number))]])
}

/** Adds the caller's URI to the error for an unknown resource. */
function withResourceUri(error: RpcErrorObject, method: string, { uri }: Params): RpcErrorObject {
  if (method !== 'resources/read' || error.code !== rpcCodes.params || typeof uri !== 'string') return error
  return { ...error, data: { ...(isRecord(error.data) && error.data), uri } }
}

/** Encodes a result that asks for input. The servers' requests are inserted unchanged. */
export function inputRequired(questions: ReadonlyMap<string, InputRequest>, requestState?: string): Buffer {
  const pieces: Buffer[] = []
  for (const [key, { method, params }] of questions) {
    const start = `${pieces.length === 0 ? '' : ','}${JSON.stringify(key)}:{"method":${JSON.stringify(method)},"params":`
    pieces.push(Buffer.from(start), params.bytes, Buffer.from('}'))
  }
  const state = requestState === undefined ? '' : `,"requestState":${JSON.stringify(requestState)}`
  const head = Buffer.from('{"resultType":"input_required","inputRequests":{')
  return Buffer.concat([head, ...pieces, Buffer.from(`}${state}}`)])
}

/** An error code from revision 2025-11-25: the user must visit a URL first. */
const visitRequired = -32042

/** Converts a `visitRequired` error to input requests, because the stateless protocol lacks that code. */
function visitsOf(error: RpcErrorObject): ReadonlyMap<string, InputRequest> | undefined {
  const { elicitations } = isRecord(error.data) ? error.data : {}
  if (error.code !== visitRequired || !Array.isArray(elicitations) || elicitations.length === 0) return undefined
  try {
    return new Map(elicitations.map((visit, index) => [`visit${index + 1}`, visitQuestion(visit)]))
  } catch (thrown) {
    if (thrown instanceof AmbiguousMember) return undefined
    throw thrown
  }
}

function visitQuestion(visit: unknown): InputRequest {
  const asked = { ...(isRecord(visit) && visit), mode: 'url' }
  const params = Json.of(definedMembers(asked, visitMembers, { revision: latestLegacy }, []))
  return { method: 'elicitation/create', params }
}

const visitMembers = serverRequests['elicitation/create'] as MemberRules

const visiting = { elicitation: { url: {} } }
