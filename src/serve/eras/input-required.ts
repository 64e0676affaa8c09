import type { RpcErrorObject } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import { AmbiguousMember, definedMembers } from '../../wire/check-members.ts'
import { fromServers, type Level } from '../../wire/defined-members.ts'
import { latestLegacy } from '../../wire/revisions.ts'
import { isObject } from '../inbound.ts'
import type { Question } from '../open-call.ts'

/** The result that asks a caller for more; what a server asks is spliced in as it came. */
export function inputRequired(questions: ReadonlyMap<string, Question>, requestState?: string): Buffer {
  const pieces: Buffer[] = []
  for (const [key, { method, params }] of questions) {
    const start = `${pieces.length === 0 ? '' : ','}${JSON.stringify(key)}:{"method":${JSON.stringify(method)},"params":`
    pieces.push(Buffer.from(start), params.bytes, Buffer.from('}'))
  }
  const state = requestState === undefined ? '' : `,"requestState":${JSON.stringify(requestState)}`
  const head = Buffer.from('{"resultType":"input_required","inputRequests":{')
  return Buffer.concat([head, ...pieces, Buffer.from(`}${state}}`)])
}

/** What servers of revision 2025-11-25 say when somebody must visit an address before the call can be made. */
const visitRequired = -32042

/** The same as questions, since the stateless era has no such error; `undefined` for every other error. */
export function visitsOf(error: RpcErrorObject): ReadonlyMap<string, Question> | undefined {
  const { elicitations } = isObject(error.data) ? error.data : {}
  if (error.code !== visitRequired || !Array.isArray(elicitations) || elicitations.length === 0) return undefined
  try {
    return new Map(elicitations.map((visit, index) => [`visit${index + 1}`, visitQuestion(visit)]))
  } catch (thrown) {
    if (thrown instanceof AmbiguousMember) return undefined
    throw thrown
  }
}

function visitQuestion(visit: unknown): Question {
  const asked = { ...(isObject(visit) && visit), mode: 'url' }
  const params = Json.of(definedMembers(asked, visitMembers, { revision: latestLegacy }, []))
  return { method: 'elicitation/create', params }
}

const visitMembers = fromServers['elicitation/create'] as Level

/** What a client must have declared before it may be asked to visit an address. */
export const visiting = { elicitation: { url: {} } }
