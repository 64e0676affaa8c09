import { isDeepStrictEqual } from 'node:util'
import type { FunctionCall } from '../core/chat.ts'
import { ToolwayError } from '../core/errors.ts'
import { Json } from '../json/json.ts'
import { isRecord } from '../lib/is-record.ts'
import type { ArgumentCheck } from './chat-run.ts'
import { type JsonSchemaObject as JsonObject, strings } from './constrain/schema.ts'
import { functionCallOf, maxCallsAtOnce } from './constrain/stage-schemas.ts'
import { newCallId } from './conversation.ts'
import type { RepairResult } from './repair/reader.ts'
import { repair } from './repair/repair.ts'
import type { ChatTool, ToolSet } from './tool-set.ts'

type CallArguments = Readonly<Record<string, unknown>>

/** A call that has been checked. It is valid unless it has a `problem`. */
export interface ParsedCall {
  /** The call, with valid JSON as arguments, because some servers parse them again in the next request. */
  readonly call: FunctionCall
  readonly tool?: ChatTool
  readonly arguments: CallArguments
  /** The arguments that are sent to the tool: the model's own text, unless it had to be repaired or extended. */
  readonly json: Json<CallArguments>
  /** What is wrong with the call, as a sentence for the model. */
  readonly problem?: string
}

/** A call that a model made or wrote as text. */
export interface MadeCall extends FunctionCall {
  /** Why the text of the call cannot be read with certainty; completes "The text …". */
  readonly unclear?: string | undefined
}

/** Checks whether the tools exist and the arguments match. `ended` means that the answer was not cut off. */
export function parseCalls(
  calls: readonly MadeCall[],
  toolSet: ToolSet,
  validate: ArgumentCheck,
  ended = false,
): Promise<readonly ParsedCall[]> {
  const tooMany = `Too many calls at once: only the first ${maxCallsAtOnce} were run.`
  return Promise.all(
    calls.map(async (call, index) => {
      const parsed = await parseCall(call)
      return index < maxCallsAtOnce ? parsed : { ...parsed, problem: tooMany }
    }),
  )

  async function parseCall({ unclear, ...call }: MadeCall): Promise<ParsedCall> {
    const { name, arguments: text } = call.function
    const tool = toolSet.find(name)
    const found = unclear === undefined ? argumentsIn(text, tool, ended) : { problem: unclear }
    const args = 'value' in found ? { ...found.value, ...tool?.preset } : {}
    const written = 'value' in found ? (Json.parseIfSame(text, found.value) ?? Json.of(found.value)) : Json.of({})
    return {
      call: { ...call, function: { name: tool?.callable.name ?? name, arguments: written.bytes.toString() } },
      tool,
      arguments: args,
      json: tool?.preset === undefined ? written : Json.of(args),
      problem: !tool
        ? toolSet.missing(name)
        : 'problem' in found
          ? `The arguments for ${name} are invalid: the text ${found.problem}. Write one JSON object.`
          : await problemWith(tool, args, validate),
    }
  }
}

function argumentsIn(text: string, tool: ChatTool | undefined, ended: boolean): ReturnType<typeof parseObject> {
  if (text.trim() === '' || text.trim() === 'null') return { value: {} }
  const required = strings(tool?.callable.parameters.required)
  return parseObject(text, { accepts: (value) => required.every((name) => name in value), ended })
}

async function problemWith({ served, callable }: ChatTool, args: CallArguments, validate: ArgumentCheck) {
  try {
    await validate(served?.definition.inputSchema ?? callable.parameters, args, callable.name)
    return undefined
  } catch (error) {
    if (error instanceof ToolwayError && ['INVALID_ARGUMENTS', 'QUARANTINED'].includes(error.code)) return error.message
    throw error
  }
}

interface ParseObjectOptions {
  /** Whether an object has the expected shape. Such an object is preferred if the text contains several objects. */
  readonly accepts: (value: JsonObject) => boolean
  /** Whether to accept an object that was cut off. */
  readonly partial?: boolean
  /** Whether the model ended its answer itself. If so, a trailing comma does not mean that something is missing. */
  readonly ended?: boolean
}

/** The object in a model's answer, or a problem that completes "The answer …", such as "was cut off". */
export function parseObject(
  text: string,
  { accepts, partial = false, ended = false }: ParseObjectOptions,
): { readonly value: JsonObject } | { readonly problem: string } {
  const found = repair(text, { accepts: (value) => isRecord(value) && accepts(value) })
  if ('unreadable' in found) return { problem: found.unreadable }
  if (!isRecord(found.value)) return { problem: 'is not a JSON object' }
  // Never use half a path or half a query. If only closing brackets are missing, the values are complete.
  const isWhole = found.complete || found.lacks === 'brackets' || (ended && found.lacks === 'maybe-more')
  if (!isWhole && !partial) return { problem: 'was cut off' }
  if (found.ambiguous !== undefined && !partial) return { problem: found.ambiguous }
  const isOther = ({ value }: RepairResult) => !isDeepStrictEqual(value, found.value)
  if (found.several?.some(isOther) && !partial) return { problem: 'contains several JSON objects' }
  return { value: found.value }
}

/** Whether text starts like a call that the model wrote out instead of making it. */
export const beginsLikeCalls = (text: string): boolean => /^\s*[{[<`]/.test(text)

/** Matches what may follow the last call: the end of a fence, tags and special tokens. */
const callsEnd = /[}\]](?:[\s;,.`]|<\/?[\w|-]{1,40}>)*$/

/**
 * The calls in a model's text, for servers that do not parse their model's calls. They are JSON, in tags or after a
 * special token. Text that starts or ends differently is an answer, even if it quotes calls, and so is JSON that only
 * mentions tools: a call has the full name of a tool and arguments, and nothing else.
 */
export function callsInText(text: string, toolSet: ToolSet): readonly MadeCall[] {
  if (!beginsLikeCalls(text)) return []
  const accepts = (value: unknown) => writtenIn(value).some((one) => isRecord(one) && typeof one.name === 'string')
  const found = text.split(/<\/tool_call>/i).flatMap((part) => {
    const one = repair(part, { accepts })
    return 'value' in one ? (one.several ?? [one]).filter(({ value }) => accepts(value)) : []
  })
  const byName = new Map(toolSet.tools.map((tool) => [tool.callable.name, tool]))
  const calls = found.flatMap(({ value }) => writtenIn(value).map((one) => writtenCall(one, byName)))
  // Beside a call of a known tool, a call of an unknown one is reported to the model.
  if (!calls.every((call) => call !== undefined) || !calls.some(({ name }) => byName.has(name))) return []
  const isWhole = ({ complete, lacks }: RepairResult) => complete || lacks === 'brackets'
  const cutOff = found.every(isWhole) ? undefined : 'was cut off'
  if (found.length === 1 && cutOff !== undefined) return []
  // If one call is unclear, the others may be parts of its arguments, so none is run.
  const unclear = found.find(({ ambiguous }) => ambiguous !== undefined)?.ambiguous ?? cutOff
  if (unclear === undefined && found.every(({ complete }) => complete) && !callsEnd.test(text)) return []
  return calls.map(({ name, args }) => ({ ...functionCallOf(newCallId(), name, args), unclear }))
}

const callMembers = new Set(['id', 'type', 'name', 'arguments', 'parameters'])

/** The call that a model wrote as an object; undefined if the object is something else, such as a tool's definition. */
function writtenCall(value: unknown, tools: ReadonlyMap<string, ChatTool>) {
  if (!isRecord(value) || !Object.keys(value).every((member) => callMembers.has(member))) return undefined
  const { name, arguments: own, parameters } = value
  const args = own ?? parameters
  if (typeof name !== 'string') return undefined
  if (typeof args === 'string') return /^\s*\{/.test(args) ? { name, args } : undefined
  if (!isRecord(args)) return undefined
  const { properties } = tools.get(name)?.callable.parameters ?? {}
  const isParameter = (member: string) => isRecord(properties) && Object.hasOwn(properties, member)
  const isSchema = ['type', 'properties', '$schema'].some((member) => member in args && !isParameter(member))
  return isSchema ? undefined : { name, args }
}

/** The values that may be calls: `{tool_calls: […]}`, a list or a single call, each optionally under `function`. */
function writtenIn(value: unknown): readonly unknown[] {
  const list = isRecord(value) && Array.isArray(value.tool_calls) ? value.tool_calls : value
  return (Array.isArray(list) ? list : [list]).map((one) =>
    isRecord(one) && isRecord(one.function) ? one.function : one,
  )
}
