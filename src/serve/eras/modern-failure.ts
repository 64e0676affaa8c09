import { type RpcErrorObject, ServerError, ToolwayError } from '../../core/errors.ts'
import type { Json } from '../../core/json.ts'
import { members } from '../../core/json-text/scan.ts'
import type { Log } from '../../core/log.ts'
import { splice } from '../../wire/bytes.ts'
import { toModern } from '../../wire/convert-result.ts'
import { errorBytes, type Id, resultPieces } from '../../wire/message.ts'
import { modernErrors } from '../../wire/revisions.ts'
import type { Answer } from '../answer.ts'
import { failureOf } from '../errors.ts'
import { isObject, type Params } from '../inbound.ts'
import { missingCapability, missingFrom } from '../questions.ts'
import { Refusal, rpc } from '../refusal.ts'
import type { Envelope } from './envelope.ts'
import { inputRequired, visiting, visitsOf } from './input-required.ts'

/** What servers of the legacy era say of a resource that they do not have. */
const noSuchResource = -32002

/**
 * What a failed request is answered with. What the door itself refuses has a status of its own; everything that comes
 * from behind the door is an answer like any other, but for a capability that the client lacks.
 */
export function modernFailure(request: Failed, thrown: unknown, log: Log): Answer {
  const { id, method, params } = request
  const refusal = thrown instanceof ToolwayError ? thrown.cause : thrown
  if (refusal instanceof Refusal) return refused(id, refusal)
  if (thrown instanceof ServerError) return fromServer(request, thrown.error)
  const failure = failureOf(method, thrown, log)
  const { headers } = failure
  if ('result' in failure) return { message: resultPieces(id, toModern(failure.result)), headers }
  const error = Buffer.isBuffer(failure.error) ? failure.error : named(failure.error, method, params)
  return { message: [errorBytes(id, error)], headers }
}

interface Failed {
  readonly id: Id
  readonly method: string
  readonly params: Params
  readonly envelope: Pick<Envelope, 'capabilities'>
}

/** The answer that a refusal is, with the id of what was refused. */
function refused(id: Id | null, { status, code, message, details: { data, headers } }: Refusal): Answer {
  const error = data === undefined ? { code, message } : { code, message, data }
  return { message: [errorBytes(id, error)], status, headers }
}

function fromServer({ id, envelope }: Failed, error: Json<RpcErrorObject>): Answer {
  const visits = visitsOf(error.value)
  if (visits !== undefined) {
    const missing = missingFrom(envelope.capabilities, visiting)
    if (missing !== undefined) return refused(id, missingCapability(missing))
    return { message: resultPieces(id, [inputRequired(visits)]) }
  }
  const { code } = error.value
  if (code === noSuchResource) return { message: [errorBytes(id, recoded(error.bytes, rpc.params))] }
  return { message: [errorBytes(id, error.bytes)], status: code === modernErrors.missingCapability ? 400 : 200 }
}

/** The same error under another number; every other byte stays. */
function recoded(error: Buffer, number: number): Buffer {
  const code = members(error)?.get('code')
  if (code === undefined) return error
  return splice(error, [[code, Buffer.from(String(number))]])
}

/** A resource that is not there is named as the caller named it. */
function named(error: RpcErrorObject, method: string, { uri }: Params): RpcErrorObject {
  if (method !== 'resources/read' || error.code !== rpc.params || typeof uri !== 'string') return error
  return { ...error, data: { ...(isObject(error.data) && error.data), uri } }
}
