import { type Call, tasksExtension } from '../../core/call.ts'
import { ownerOf } from '../../core/cluster.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'
import type { ResultBody } from '../../core/result.ts'
import { Json } from '../../json/json.ts'
import { hasMoreValues } from '../../json/json-text.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import type { Seal } from '../../lib/seal.ts'
import { bytesOf, splice, textOf } from '../../wire/bytes.ts'
import { AmbiguousMember, definedBytes, unambiguous } from '../../wire/check-members.ts'
import { capabilityFor, inputRequired, isInputRequest } from '../../wire/defined-members.ts'
import { maxMessageValues } from '../../wire/message.ts'
import { modernRevision } from '../../wire/revisions.ts'
import { withCommas } from '../listing/list-reader.ts'

type Rest = Readonly<Record<string, unknown>> | undefined

/** The `resultType` of a result, however it is spelt; a result without one is complete, one with another value is not. */
export function resultTypeOf(result: Buffer): string {
  const type = unambiguous(result, ['resultType']).get('resultType')
  return type === undefined ? 'complete' : (textOf(type) ?? '')
}

/**
 * Whether the caller's client can process a result of this type, which is not `input_required`. Clients with sessions know
 * no types: without its type, a result that only started a task looks like a complete one that is empty.
 */
export function understands({ caller, peer }: Call, type: string): boolean {
  if (type === 'complete') return true
  const extensions = asRecord(caller.capabilities.extensions)
  const isDeclared = type === 'task' ? Object.hasOwn(extensions, tasksExtension) : Object.keys(extensions).length > 0
  return peer.rounds && type !== '' && isDeclared
}

/** How much input a server may ask for at once. Clients send the state back in a request, whose size is limited too. */
const maxInputRequests = fixedLimits.inputRequests.value
const maxRequestState = fixedLimits.requestStateBytes.value

/**
 * Reduces the input requests in a result to the members that the protocol defines. Throws if the server asks for
 * something that MCP does not define or the caller's client does not support.
 */
export function checkedInputRequests(result: Buffer, { caller, entry }: Call): Buffer {
  const { server } = entry
  const refused = (why: string) =>
    new ToolwayError('INVALID_ARGUMENTS', `${server} asked for input, but ${why}`, { server })
  if (hasMoreValues(result, maxMessageValues))
    throw refused(`with more than ${withCommas(maxMessageValues)} values (a fixed limit).`)
  let defined: Buffer
  try {
    defined = definedBytes(result, inputRequired, { revision: modernRevision }, [])
  } catch (thrown) {
    if (thrown instanceof AmbiguousMember) throw refused(`its request is ambiguous. ${thrown.message}`)
    throw thrown
  }
  const { inputRequests, requestState } = Json.raw<Record<string, unknown>>(defined).value
  if (inputRequests != null && !isRecord(inputRequests)) throw refused('its inputRequests are not an object.')
  if (requestState !== undefined && typeof requestState !== 'string') throw refused('its requestState is not a string.')
  if (inputRequests === undefined && requestState === undefined)
    throw refused('it sent neither inputRequests nor a requestState.')
  if (requestState !== undefined && requestState.length > maxRequestState)
    throw refused(
      `its requestState is longer than ${maxRequestState / 1024} KiB (a fixed limit), which clients cannot send back.`,
    )
  if (Object.keys(asRecord(inputRequests)).length > maxInputRequests)
    throw refused(`it sent more than ${maxInputRequests} requests at once (a fixed limit).`)
  for (const question of Object.values(asRecord(inputRequests))) {
    const { method } = asRecord(question)
    const name = quote(String(method))
    if (!isInputRequest(method)) throw refused(`MCP does not define ${name} as a request to clients.`)
    const capability = capabilityFor.get(method) as string
    if (caller.capabilities[capability] === undefined)
      throw refused(`your client did not declare the capability "${capability}", which ${name} needs.`)
  }
  return defined
}

/**
 * Seals the server's `requestState` in a result, so that only this caller can send it back. `replica` is the only replica
 * whose process of the server can read the state; the next round is forwarded to it.
 */
export function sealedResult(result: Buffer, seal: Seal, binding: string, replica?: string): Json<ResultBody> {
  const state = unambiguous(result, ['requestState']).get('requestState')
  const text = textOf(state)
  if (!state || text === undefined) return Json.raw(result)
  const sealed = seal.close(text, binding)
  return Json.raw(splice(result, [[state, bytesOf(replica === undefined ? sealed : `${replica}.${sealed}`)]]))
}

/** The caller's input for the next round, with the server's own state restored. `replica` as for `sealedResult`. */
export function unsealedRest(rest: Rest, seal: Seal, binding: string, replica?: string): Rest {
  if (rest?.requestState === undefined) return rest
  const given = typeof rest.requestState === 'string' ? rest.requestState : ''
  const isOurs = replica === undefined || ownerOf(given) === replica
  const requestState = isOurs ? seal.open(given.slice(given.indexOf('.') + 1), binding) : undefined
  if (requestState !== undefined) return { ...rest, requestState }
  const message = 'Invalid or expired requestState: start the call again.'
  throw new ServerError(Json.of({ code: -32602, message, data: { reason: 'invalid_request_state' } }))
}

/** Asks the caller for all requested input at once. Used if the caller cannot send a follow-up request itself. */
export async function askCaller(result: Buffer, { peer, signal }: Call): Promise<Record<string, unknown>> {
  const { inputRequests, requestState } = Json.raw<Record<string, unknown>>(result).value
  // If one request fails, so does the call, which then no longer needs the answers to the others.
  const failure = new AbortController()
  const until = AbortSignal.any([signal, failure.signal])
  const answers = await Promise.all(
    Object.entries(asRecord(inputRequests)).map(async ([key, question]) => {
      const { method, params } = asRecord(question)
      const answer = await peer.ask(String(method), Json.of(params ?? {}), until)
      return [key, answer.value] as const
    }),
  ).catch((error) => {
    failure.abort(error)
    throw error
  })
  return { inputResponses: Object.fromEntries(answers), requestState }
}
