import type * as z from 'zod'
import { type Call, type Caller, type Handler, type LogLevel, logLevels } from '../core/call.ts'
import type { Definition } from '../core/entry.ts'
import { ServerError, ToolwayError } from '../core/errors.ts'
import {
  type Content,
  type Result,
  type ResultBody,
  refusedResult,
  resultOf,
  structuredResult,
  textResult,
} from '../core/result.ts'
import type { ServerSummary } from '../core/source-status.ts'
import { Json } from '../json/json.ts'
import { isRecord } from '../lib/is-record.ts'
import { thrownText } from '../lib/message-text.ts'
import { nearMiss } from '../lib/similar-text.ts'
import { type CompiledSchema, compileSchema, type InputOf, type OutputOf, type ToolSchema } from './schema.ts'

/** The call that runs a tool, and methods to notify the caller while the tool is running. */
export interface ToolContext {
  readonly call: Call
  /** Aborted when the result is no longer needed. Pass it to every slow operation. */
  readonly signal: AbortSignal
  readonly caller: Caller
  /** Sends a progress notification, if the caller asked for progress. */
  progress(done: number, total?: number, message?: string): void
  /** Sends a log message, if the caller asked for messages of this level. */
  log(level: LogLevel, data: unknown): void
}

export interface ToolAnnotations {
  readonly title?: string
  readonly readOnlyHint?: boolean
  readonly destructiveHint?: boolean
  readonly idempotentHint?: boolean
  readonly openWorldHint?: boolean
}

/** What a tool is like, for those who run it. */
interface ToolTraits {
  readonly aliases?: readonly string[]
  /** True if the tool does not change anything anywhere, so that callers without write access can use it. */
  readonly readOnly?: boolean
  /** Overrides the source's timeout. */
  readonly timeoutMs?: number
  /** The name of the setting that defines `timeoutMs`, for error messages. */
  readonly timeoutKey?: string | undefined
  /** Set if the tool only runs other calls, each of which is counted separately. */
  readonly carries?: true
  /** Set if a tool that runs other calls also does work of its own, so that it counts as a call itself. */
  readonly counted?: true
  /** For plugin tools: the tool runs in a child process, which is killed if it does not stop in time. */
  readonly isolated?: Isolated
}

/** A tool ready to be served by a `toolSource`; made by `defineTool`. */
export interface Tool extends ToolTraits {
  readonly name: string
  readonly definition: Definition
  /** The description for a caller that sees these servers; `name` is the name under which the tool is listed. */
  descriptionFor?(servers: readonly ServerSummary[], name: string): string
  readonly readOnly: boolean
  readonly idempotent: boolean
  /** True if the pipeline checks the arguments against the schema in the definition. */
  readonly checkedBySchema?: true
  readonly run: Handler
}

/** Whether a tool runs in a child process. `env` lists variables that it gets besides `PATH`, `HOME` and the like. */
export type Isolated = true | { readonly env: readonly string[] }

/** The types that `run` may return: text, an object (sent as structured content and as text), or a complete result. */
type RunAnswer<Output extends z.ZodObject | undefined> = Output extends z.ZodObject
  ? z.input<Output> | Result
  : string | object

export interface ToolOptions<Input extends z.ZodObject, Output extends z.ZodObject | undefined = undefined>
  extends ToolTraits {
  /** The tool's name: at most 64 letters, digits, `_` and `-`. */
  readonly name: string
  readonly title?: string
  /** The description for the model. A function can adapt it to the servers that a caller sees. */
  readonly description: string | ((servers: readonly ServerSummary[], name: string) => string)
  /** The input schema. Unknown fields are rejected, unless this is a `z.looseObject`. */
  readonly input: Input
  /** The output schema. If given, it is published to clients and every result is checked against it. */
  readonly output?: Output
  readonly annotations?: ToolAnnotations
  run(args: z.output<Input>, context: ToolContext): RunAnswer<Output> | Promise<RunAnswer<Output>>
}

export interface HandlerOptions<Input extends ToolSchema, Output extends ToolSchema | undefined = undefined>
  extends Omit<ToolOptions<z.ZodObject>, 'input' | 'output' | 'run' | 'carries' | 'counted'> {
  /** The input schema: a Zod object, any Standard Schema for an object, or JSON Schema. Omit it for no arguments. */
  readonly inputSchema?: Input
  /** The output schema, published to clients. Results are checked against it, unless it is JSON Schema. */
  readonly outputSchema?: Output
  handler(args: OutputOf<Input>, context: ToolContext): HandlerAnswer<Output> | Promise<HandlerAnswer<Output>>
}

/** The types that `handler` may return: the same as for `run`, and content blocks. */
export type HandlerAnswer<Output extends ToolSchema | undefined> =
  | Result
  | (Output extends ToolSchema ? InputOf<Output> : string | readonly Content[] | ResultBody | object)

/**
 * Makes a tool out of a function. The function gets parsed and typed arguments; invalid arguments are rejected before
 * it runs.
 *
 * With `inputSchema` and `handler`, an exception becomes a result with `isError` and the exception's message as text.
 * With `input` and `run`, the form for plugins, an exception is logged and the caller only learns that the tool failed.
 * In both cases, throw a `ToolwayError` to reject with a code.
 *
 * @example
 * ```ts
 * const dice = defineTool({
 *   name: 'roll_dice',
 *   description: 'Rolls dice and adds them up.',
 *   inputSchema: z.object({
 *     count: z.int().min(1).max(100).default(1).describe('How many dice.'),
 *     sides: z.int().min(2).default(6),
 *   }),
 *   readOnly: true,
 *   handler: ({ count, sides }) => {
 *     const rolls = Array.from({ length: count }, () => randomInt(1, sides + 1))
 *     return { rolls, total: rolls.reduce((sum, roll) => sum + roll, 0) }
 *   },
 * })
 * ```
 */
export function defineTool<Input extends ToolSchema, Output extends ToolSchema | undefined = undefined>(
  options: HandlerOptions<Input, Output>,
): Tool
export function defineTool<Input extends z.ZodObject, Output extends z.ZodObject | undefined = undefined>(
  options: ToolOptions<Input, Output>,
): Tool
export function defineTool(options: HandlerOptions<ToolSchema, ToolSchema> | AnyToolOptions): Tool {
  if (!isRecord(options)) throw new TypeError('defineTool needs an object with a name, a description and a handler.')
  const { name, title, description, annotations, readOnly = annotations?.readOnlyHint ?? false } = options
  if (typeof name !== 'string' || !/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    throw new TypeError(`Invalid tool name "${name}": use up to 64 letters, digits, "_" and "-".`)
  }
  const problem = optionsProblem(options)
  if (problem !== undefined) throw new TypeError(`The tool "${name}" ${problem}.`)
  const { aliases, timeoutMs, timeoutKey, isolated, carries, counted } = options as AnyToolOptions
  const isHandler = 'handler' in options
  const { inputSchema, outputSchema, run } = toolParts(options)
  const input = compileSchema(inputSchema, name, 'input')
  const output = outputSchema && compileSchema(outputSchema, name, 'output')
  const definition = {
    name,
    title,
    description: typeof description === 'string' ? description : description([], name),
    inputSchema: input.json,
    outputSchema: output?.json,
    annotations: { readOnlyHint: readOnly, ...annotations },
  }
  checkJson(definition)
  return {
    name,
    definition,
    aliases,
    descriptionFor: typeof description === 'string' ? undefined : description,
    readOnly,
    idempotent: readOnly || annotations?.idempotentHint === true,
    timeoutMs,
    timeoutKey,
    carries: carries || undefined,
    counted: counted || undefined,
    isolated: isolated || undefined,
    checkedBySchema: input.read ? undefined : true,
    async run(call) {
      const given = call.input.arguments.value
      const reading = input.read ? input.read(given) : { value: given }
      const read = reading instanceof Promise ? await reading : reading
      if ('refusal' in read) throw read.refusal
      try {
        return await resultOfAnswer(await run(read.value, contextOf(name, call)), { name, output, isHandler })
      } catch (thrown) {
        // The tool itself exists, so the error is about something that its arguments name. Return a result, because
        // many agents would stop at a JSON-RPC error.
        if (thrown instanceof ToolwayError && thrown.kind.malformed) return refusedResult(thrown)
        if (thrown instanceof ToolwayError || thrown instanceof ServerError) throw thrown
        if (call.signal.aborted) throw call.signal.reason
        if (isHandler) return failedResult(thrown)
        // The exception's message may hold secrets, so the caller only gets Toolway's own errors.
        const sentence = `${name} failed unexpectedly; see Toolway's log for the cause.`
        throw new ToolwayError('INTERNAL', sentence, { cause: thrown })
      }
    },
  }
}

/** One definition that is not JSON would make every list with it fail. */
function checkJson(definition: Definition): void {
  try {
    JSON.stringify(definition)
  } catch (thrown) {
    const reason = thrownText(thrown).split('\n', 1)[0]
    throw new TypeError(`The definition of the tool "${definition.name}" cannot be written as JSON: ${reason}.`)
  }
}

type AnyToolOptions = ToolOptions<z.ZodObject, z.ZodObject | undefined>

const toolOptionNames: Readonly<Record<keyof AnyToolOptions | keyof HandlerOptions<ToolSchema>, true>> = {
  ...{ name: true, aliases: true, title: true, description: true, annotations: true, readOnly: true, isolated: true },
  ...{ timeoutMs: true, timeoutKey: true, carries: true, counted: true, input: true, output: true, run: true },
  ...{ inputSchema: true, outputSchema: true, handler: true },
}

/** What is wrong with a definition. Programs and plugins in JavaScript have no type checks. */
function optionsProblem(options: object): string | undefined {
  const { description, timeoutMs, ...others } = options as Readonly<Record<string, unknown>>
  const { handler, run, input, output, inputSchema, outputSchema } = others
  const unknown = Object.keys(options).find((option) => !Object.hasOwn(toolOptionNames, option))
  if (unknown !== undefined) {
    const near = nearMiss(unknown, Object.keys(toolOptionNames))
    return `has an unknown option "${unknown}"${near === undefined ? '' : ` (did you mean "${near}"?)`}`
  }
  if (typeof description !== 'string' && typeof description !== 'function') return 'needs a description'
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs > 0))
    return 'has an invalid timeoutMs: use a number of milliseconds above 0'
  if ((typeof handler === 'function') === (typeof run === 'function'))
    return 'needs one function: handler, or run for a plugin'
  if (handler !== undefined && (input ?? output) !== undefined)
    return 'has a handler, so its schemas must be named inputSchema and outputSchema'
  if (run !== undefined && (inputSchema ?? outputSchema ?? null) !== null)
    return 'has a run function, so its schemas must be named input and output'
  if (run !== undefined && !isRecord(input)) return 'has a run function, so it needs an input schema (a Zod object)'
  return undefined
}

const noArguments: ToolSchema = { type: 'object', properties: {}, additionalProperties: false }

/** The schemas and the function of a tool, in either form. */
function toolParts(options: HandlerOptions<ToolSchema, ToolSchema> | AnyToolOptions) {
  if ('handler' in options) {
    const { inputSchema = noArguments, outputSchema, handler } = options
    return { inputSchema, outputSchema, run: (args: unknown, context: ToolContext) => handler(args as never, context) }
  }
  return {
    inputSchema: options.input as unknown as ToolSchema,
    outputSchema: options.output as unknown as ToolSchema | undefined,
    run: (args: unknown, context: ToolContext) => options.run(args as never, context),
  }
}

/** An exception of a handler as a result, with its message as text. */
function failedResult(thrown: unknown): Result {
  const text = thrownText(thrown) || 'The tool failed.'
  return resultOf({ content: [{ type: 'text', text: text.toWellFormed() }], isError: true })
}

function contextOf(name: string, call: Call): ToolContext {
  const { signal, caller, peer, input } = call
  return {
    call,
    signal,
    caller,
    progress(progress, total, message) {
      const { progressToken } = input.meta
      if (progressToken === undefined || signal.aborted) return
      peer.notify('notifications/progress', Json.of({ progressToken, progress, total, message }))
    },
    log(level, data) {
      const { logLevel } = peer
      if (logLevel === undefined || logLevels.indexOf(level) < logLevels.indexOf(logLevel)) return
      peer.notify('notifications/message', Json.of({ level, logger: name, data }))
    },
  }
}

interface Expected {
  readonly name: string
  /** Whether an object may be a whole result. From `run`, as in 0.1.0, only `resultOf` and the like make those. */
  readonly isHandler: boolean
  readonly output: CompiledSchema | undefined
}

async function resultOfAnswer(answer: unknown, { name, output, isHandler }: Expected): Promise<Result> {
  if (isResult(answer)) return answer
  if (output !== undefined) {
    const read = output.read ? await output.read(answer) : { value: answer }
    if ('value' in read && isRecord(read.value)) return jsonResult(name, read.value)
    const cause = 'refusal' in read ? read.refusal : undefined
    throw new ToolwayError('INTERNAL', `${name} returned a result that violates its output schema.`, { cause })
  }
  if (typeof answer === 'string') return textResult(answer)
  if (areBlocks(answer)) return resultOf({ content: answer.map(wellFormedBlock) })
  if (isHandler && isResultBody(answer)) return resultOf(checkedBody(name, answer))
  if (isRecord(answer) && isObjectInJson(answer)) return jsonResult(name, answer)
  throw new ToolwayError(
    'INTERNAL',
    `${name} returned ${valueKind(answer)}; it must return text, content blocks, an object or a result.`,
  )
}

/** An object as a result. If it cannot be written as JSON, the tool has a mistake that the caller cannot correct. */
function jsonResult(name: string, value: Readonly<Record<string, unknown>>): Result {
  try {
    return structuredResult(value)
  } catch (cause) {
    throw new ToolwayError('INTERNAL', `${name} returned an object that cannot be written as JSON.`, { cause })
  }
}

const valueKind = (value: unknown): string => {
  if (Array.isArray(value)) return 'a list of other values'
  if (typeof value !== 'object' || value === null) return value === null ? 'null' : `a value of type ${typeof value}`
  return `an object of type ${value.constructor?.name || 'Object'}`
}

/** The members that a content block of each type must have, with their types. */
const blockMembers: Readonly<Record<string, Readonly<Record<string, 'string' | 'object'>>>> = {
  text: { text: 'string' },
  image: { data: 'string', mimeType: 'string' },
  audio: { data: 'string', mimeType: 'string' },
  resource: { resource: 'object' },
  resource_link: { uri: 'string', name: 'string' },
}

const isContentBlock = (block: unknown): block is Content => {
  if (!isRecord(block) || typeof block.type !== 'string' || !Object.hasOwn(blockMembers, block.type)) return false
  return Object.entries(blockMembers[block.type] ?? {}).every(([member, type]) => typeof block[member] === type)
}

const areBlocks = (value: unknown): value is readonly Content[] => Array.isArray(value) && value.every(isContentBlock)

/** With what servers of stateless revisions add, because a handler may return the result of another call. */
const resultBodyMembers = ['content', 'structuredContent', 'isError', '_meta', 'resultType', 'ttlMs', 'cacheScope']

/** An object with other members, too, is data: an empty list of its own could be mistaken for content blocks. */
const isResultBody = (answer: unknown): answer is ResultBody =>
  isRecord(answer) &&
  areBlocks(answer.content) &&
  Object.entries(answer).every(([member, value]) => value === undefined || resultBodyMembers.includes(member))

/** Replaces lone surrogates, such as half of a character that was cut: many JSON parsers refuse the whole message. */
const wellFormedBlock = (block: Content): Content =>
  typeof block.text === 'string' && !block.text.isWellFormed() ? { ...block, text: block.text.toWellFormed() } : block

function checkedBody(name: string, body: ResultBody): ResultBody {
  const { isError, structuredContent } = body
  const isValid = ['undefined', 'boolean'].includes(typeof isError)
  if (isValid && (structuredContent === undefined || isRecord(structuredContent)))
    return { ...body, content: body.content?.map(wellFormedBlock) }
  const wrong = isValid ? 'structuredContent must be an object' : 'isError must be true or false'
  throw new ToolwayError('INTERNAL', `${name} returned an invalid result: ${wrong}.`)
}

/**
 * Whether an object is also one in JSON. Dates are not, and the content of maps, streams, errors and others would be
 * lost without notice.
 */
function isObjectInJson(value: Readonly<Record<string, unknown>>): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  // Plain objects of any realm: test runners and `node:vm` have their own `Object`.
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null
  if (isPlain && value.toJSON === undefined) return true
  const json = JSON.stringify(value)
  return json?.startsWith('{') === true && (isPlain || json !== '{}')
}

const isResult = (answer: unknown): answer is Result => isRecord(answer) && answer.body instanceof Json
