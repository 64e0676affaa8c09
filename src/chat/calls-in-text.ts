import type { FunctionCall } from '../core/chat.ts'
import { isSchemaObject as isObject } from './constrain/schema.ts'
import { newCallId } from './conversation.ts'
import type { Offer } from './offer.ts'
import { repair } from './repair/repair.ts'

/** Whether a text begins as calls do that a model writes out where it should make them. */
export const beginsLikeCalls = (text: string): boolean => /^\s*[{[<`]/.test(text)

/**
 * The calls in a text, for servers that do not understand the way in which their model makes calls: as JSON, in tags or
 * behind a special token. A text that begins with anything else is an answer, whatever it goes on to quote.
 */
export function callsInText(text: string, offer: Offer): readonly FunctionCall[] {
  if (!beginsLikeCalls(text)) return []
  const isCall = (value: unknown): value is Written =>
    isObject(value) && typeof value.name === 'string' && offer.find(value.name) !== undefined
  const calls = text.split(/<\/tool_call>/i).flatMap((part) => {
    const found = repair(part, { accepts: (value) => writtenIn(value).some(isCall) })
    return 'value' in found && (found.complete || found.lacks === 'brackets')
      ? writtenIn(found.value).filter(isCall)
      : []
  })
  return calls.map(({ name, arguments: given, parameters = {} }) => ({
    id: newCallId(),
    type: 'function',
    function: { name, arguments: typeof given === 'string' ? given : JSON.stringify(given ?? parameters) },
  }))
}

interface Written {
  readonly name: string
  readonly arguments?: unknown
  readonly parameters?: unknown
}

/** `{tool_calls: […]}`, a list of calls, or one; each by itself or under `function`. */
function writtenIn(value: unknown): readonly unknown[] {
  const list = isObject(value) && Array.isArray(value.tool_calls) ? value.tool_calls : value
  return (Array.isArray(list) ? list : [list]).map((one) =>
    isObject(one) && isObject(one.function) ? one.function : one,
  )
}
