import type { Call } from '../../core/call.ts'
import { ownerOf } from '../../core/cluster.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import type { ResultBody } from '../../core/result.ts'
import { asRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import type { Seal } from '../../lib/seal.ts'
import { bytesOf, splice, textOf } from '../../wire/bytes.ts'
import { AmbiguousMember, definedBytes, unambiguous } from '../../wire/check-members.ts'
import { capabilityFor, inputRequired, isInputRequest } from '../../wire/defined-members.ts'
import { modernRevision } from '../../wire/revisions.ts'

type Rest = Readonly<Record<string, unknown>> | undefined

/** Whether a stateless server needs input from the caller before it can respond. */
export const isInputRequired = (result: Buffer): boolean => resultTypeOf(result) === 'input_required'

/** The `resultType` of a result, however it is spelt; undefined if it has none. */
export const resultTypeOf = (result: Buffer): string | undefined =>
  textOf(unambiguous(result, ['resultType']).get('resultType'))

/**
 * Reduces the input requests in a result to the members that the protocol defines. Throws if the server asks for
 * something that MCP does not define or the caller's client does not support.
 */
export function checkedInputRequests(result: Buffer, { caller, entry }: Call): Buffer {
  const { server } = entry
  const refused = (why: string) =>
    new ToolwayError('INVALID_ARGUMENTS', `${server} asked for input, but ${why}`, { server })
  let defined: Buffer
  try {
    defined = definedBytes(result, inputRequired, { revision: modernRevision }, [])
  } catch (thrown) {
    if (thrown instanceof AmbiguousMember) throw refused(`its request is ambiguous. ${thrown.message}`)
    throw thrown
  }
  const { inputRequests } = Json.raw<Record<string, unknown>>(defined).value
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
  const answers = await Promise.all(
    Object.entries(asRecord(inputRequests)).map(async ([key, question]) => {
      const { method, params } = asRecord(question)
      const answer = await peer.ask(String(method), Json.of(params ?? {}), signal)
      return [key, answer.value] as const
    }),
  )
  return { inputResponses: Object.fromEntries(answers), requestState }
}
