import type { RpcErrorObject } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
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
  return new Map(
    elicitations.map((visit, index) => {
      const params = Json.of({ mode: 'url', ...visit })
      return [`visit${index + 1}`, { method: 'elicitation/create', params }]
    }),
  )
}

/** What a client must have declared before it may be asked to visit an address. */
export const visiting = { elicitation: { url: {} } }
