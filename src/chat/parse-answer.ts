import type { FunctionCall } from '../core/chat.ts'
import { ToolwayError } from '../core/errors.ts'
import { Json } from '../core/json.ts'
import type { ArgumentCheck } from './chat-run.ts'
import { isSchemaObject as isObject, type JsonSchemaObject as JsonObject, strings } from './constrain/schema.ts'
import { newCallId } from './conversation.ts'
import { repair } from './repair/repair.ts'
import type { ChatTool, ToolSet } from './tool-set.ts'

type Arguments = Readonly<Record<string, unknown>>

/** A call of a model that has been looked at: one that can be made, or what is wrong with it. */
export interface ParsedCall {
  /** With arguments that are JSON, whatever the model wrote: some servers read them again in the next request. */
  readonly call: FunctionCall
  readonly tool?: ChatTool
  readonly arguments: Arguments
  /** The same as it is sent: in the model's own digits, where nothing had to be repaired or added. */
  readonly json: Json<Arguments>
  /** In a sentence for the model. */
  readonly problem?: string
}

/** More in one answer are more than anybody can mean. */
const maxCalls = 32

/**
 * Looks at the calls of one answer: whether there are such tools, and whether the arguments fit them. `ended` says that
 * the answer was not cut off.
 */
export function parseCalls(
  calls: readonly FunctionCall[],
  toolSet: ToolSet,
  validate: ArgumentCheck,
  ended = false,
): Promise<readonly ParsedCall[]> {
  return Promise.all(
    calls.map(async (call, index) => {
      const read = await parseCall(call, toolSet, validate, ended)
      const tooMany = `Too many calls at once: only the first ${maxCalls} are made.`
      return index < maxCalls ? read : { ...read, problem: tooMany }
    }),
  )
}

async function parseCall(
  call: FunctionCall,
  toolSet: ToolSet,
  validate: ArgumentCheck,
  ended: boolean,
): Promise<ParsedCall> {
  const { name } = call.function
  const tool = toolSet.find(name)
  const given = argumentsIn(call.function.arguments, tool, ended)
  const args = 'value' in given ? { ...given.value, ...tool?.preset } : {}
  const written = 'value' in given ? asWritten(call.function.arguments, given.value) : Json.of({})
  const read = (problem?: string): ParsedCall => ({
    call: {
      ...call,
      function: {
        name: tool?.callable.name ?? name,
        arguments: written.bytes.toString(),
      },
    },
    ...(tool && { tool }),
    arguments: args,
    json: tool?.preset === undefined ? written : Json.of(args),
    ...(problem !== undefined && { problem }),
  })
  if (!tool) return read(toolSet.missing(name))
  if (!('value' in given))
    return read(`What was given as the arguments of ${name} ${given.problem}. Write one JSON object.`)
  return read(await problemWith(tool, args, validate))
}

/** Keeps the text of the model where it means just this value: numbers beyond 2^53 would be rounded otherwise. */
function asWritten(text: string, value: Arguments): Json<Arguments> {
  try {
    const written = Json.parse(text) as Json<Arguments>
    if (JSON.stringify(written.value) === JSON.stringify(value)) return written
  } catch {
    // It had to be repaired.
  }
  return Json.of(value)
}

/** The object that a model meant by its arguments. */
function argumentsIn(text: string, tool: ChatTool | undefined, ended: boolean): ReturnType<typeof parseObject> {
  if (text.trim() === '' || text.trim() === 'null') return { value: {} }
  const required = strings(tool?.callable.parameters.required)
  return parseObject(text, { accepts: (value) => required.every((name) => name in value), ended })
}

async function problemWith(
  { served, callable }: ChatTool,
  args: Arguments,
  validate: ArgumentCheck,
): Promise<string | undefined> {
  try {
    await validate(served?.definition.inputSchema ?? callable.parameters, args, callable.name)
    return undefined
  } catch (error) {
    const told = error instanceof ToolwayError && (error.code === 'INVALID_ARGUMENTS' || error.code === 'QUARANTINED')
    if (told) return error.message
    throw error
  }
}

interface ParseObjectOptions {
  /** Whether an object looks like the one that was asked for: of several, that one is meant. */
  readonly accepts: (value: JsonObject) => boolean
  /** Half of it will do. */
  readonly partial?: boolean
  /** The model has ended its answer itself: what follows a last comma is nothing, not something that was cut off. */
  readonly ended?: boolean
}

/** The object that a model meant, or what is wrong with what it wrote, as the end of a sentence that begins with "it". */
export function parseObject(
  text: string,
  { accepts, partial = false, ended = false }: ParseObjectOptions,
): { readonly value: JsonObject } | { readonly problem: string } {
  const found = repair(text, { accepts: (value) => isObject(value) && accepts(value) })
  if ('unreadable' in found) return { problem: found.unreadable }
  if (!isObject(found.value)) return { problem: 'is no JSON object' }
  // Half a path or half a query is not what anybody wanted to have done. A model that forgets the last brackets has still
  // said all that it wanted to.
  const isWhole = found.complete || found.lacks === 'brackets' || (ended && found.lacks === 'maybe-more')
  if (!isWhole && !partial) return { problem: 'was cut off' }
  return { value: found.value }
}

/** Whether a text begins as calls do that a model writes out where it should make them. */
export const beginsLikeCalls = (text: string): boolean => /^\s*[{[<`]/.test(text)

/**
 * The calls in a text, for servers that do not understand the way in which their model makes calls: as JSON, in tags or
 * behind a special token. A text that begins with anything else is an answer, whatever it goes on to quote.
 */
export function callsInText(text: string, toolSet: ToolSet): readonly FunctionCall[] {
  if (!beginsLikeCalls(text)) return []
  const isCall = (value: unknown): value is Written =>
    isObject(value) && typeof value.name === 'string' && toolSet.find(value.name) !== undefined
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
