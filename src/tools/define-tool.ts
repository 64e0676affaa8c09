import type * as z from 'zod'
import { type Call, type Caller, type Handler, type LogLevel, logLevels } from '../core/call.ts'
import type { Definition } from '../core/entry.ts'
import { ServerError, ToolwayError } from '../core/errors.ts'
import { Json } from '../core/json.ts'
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
import { type CompiledSchema, compileSchema, type InputOf, type OutputOf, type ToolSchema } from './schema.ts'

/** What a tool may know of the call that runs it, and tell its caller meanwhile. */
export interface ToolContext {
  readonly call: Call
  /** Aborted when nobody waits for the answer any more: hand it to whatever takes long. */
  readonly signal: AbortSignal
  readonly caller: Caller
  /** Reports how far the call is, where the caller wants to know. */
  progress(done: number, total?: number, message?: string): void
  /** Sends a log message to the caller, where it wants messages of this level. */
  log(level: LogLevel, data: unknown): void
}

/** Hints for clients, as the protocol names them. */
export interface ToolAnnotations {
  readonly title?: string
  readonly readOnlyHint?: boolean
  readonly destructiveHint?: boolean
  readonly idempotentHint?: boolean
  readonly openWorldHint?: boolean
}

/** A tool ready to be served by a `toolSource`; made by `defineTool`. */
export interface Tool {
  readonly name: string
  readonly definition: Definition
  /** Other names that it goes by. */
  readonly aliases?: readonly string[]
  /** Its description for callers that see these servers, where it tells of them; `name` is the one it is listed by. */
  descriptionFor?(servers: readonly ServerSummary[], name: string): string
  readonly readOnly: boolean
  readonly idempotent: boolean
  /** Instead of its source's timeout. */
  readonly timeoutMs?: number
  /** The setting that this timeout comes from. */
  readonly timeoutKey?: string | undefined
  /** It only runs other calls, which are counted themselves. */
  readonly carries?: true
  /** It wants to run in a process of its own; whoever loads it sees to that. */
  readonly isolated?: Isolated
  /** Its arguments are checked against the schema of its definition before it runs. */
  readonly checkedBySchema?: true
  readonly run: Handler
}

/** A process of its own, and the variables of ours that it may see there beside `PATH`, `HOME` and the like. */
export type Isolated = true | { readonly env: readonly string[] }

/** Text, an object (structured content, and the same as JSON text), or a result of the tool's own making. */
type Answer<Output extends z.ZodObject | undefined> = Output extends z.ZodObject
  ? z.input<Output> | Result
  : string | object

export interface ToolOptions<Input extends z.ZodObject, Output extends z.ZodObject | undefined = undefined> {
  /** Up to 64 of `[A-Za-z0-9_-]`. */
  readonly name: string
  /** Other names that it goes by. */
  readonly aliases?: readonly string[]
  readonly title?: string
  /** What the tool is good for, for a model. A function can tell each caller of the servers that it sees. */
  readonly description: string | ((servers: readonly ServerSummary[], name: string) => string)
  /** Fields that it does not name are refused, unless it is a `z.looseObject`. */
  readonly input: Input
  /** If given, every answer is checked against it, and clients are told. */
  readonly output?: Output
  readonly annotations?: ToolAnnotations
  /** It changes nothing anywhere. Allowed where writes are not. */
  readonly readOnly?: boolean
  readonly timeoutMs?: number
  /** The setting that this timeout comes from, for the error that names it. */
  readonly timeoutKey?: string | undefined
  /** It only runs other calls, which are counted themselves. */
  readonly carries?: true
  /** For tools of plugins: runs in a child process, which is ended when it does not stop in time. */
  readonly isolated?: Isolated
  run(args: z.output<Input>, context: ToolContext): Answer<Output> | Promise<Answer<Output>>
}

/** A tool as the protocol describes one, with the function that runs it. */
export interface HandlerOptions<Input extends ToolSchema, Output extends ToolSchema | undefined = undefined>
  extends Omit<ToolOptions<z.ZodObject>, 'input' | 'output' | 'run' | 'carries'> {
  /** A Zod object, any Standard Schema that describes an object, or JSON Schema. Without one the tool has no arguments. */
  readonly inputSchema?: Input
  /** If given, clients are told what the structured content is like. Answers are checked, except against JSON Schema. */
  readonly outputSchema?: Output
  handler(args: OutputOf<Input>, context: ToolContext): HandlerAnswer<Output> | Promise<HandlerAnswer<Output>>
}

/** Text, content blocks, an object (structured content, and the same as JSON text), or a whole result. */
export type HandlerAnswer<Output extends ToolSchema | undefined> =
  | Result
  | (Output extends ToolSchema ? InputOf<Output> : string | readonly Content[] | ResultBody | object)

/**
 * Makes a tool out of a function. Arguments reach it parsed and typed; bad ones are refused before it runs.
 *
 * With `inputSchema` and `handler`, an exception becomes a result with `isError` and its message as text. With `input` and
 * `run`, the form for plugins, exceptions are logged and the caller is only told that the tool failed. In both, throw a
 * `ToolwayError` to refuse with a code.
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
  const { name, title, description, annotations, readOnly = annotations?.readOnlyHint ?? false } = options
  if (typeof name !== 'string' || !/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    throw new TypeError(`A tool cannot be named "${name}": up to 64 letters, digits, "_" and "-".`)
  }
  const { inputSchema, outputSchema, run, explain } = partsOf(options)
  const input = compileSchema(inputSchema, name, 'input')
  const output = outputSchema && compileSchema(outputSchema, name, 'output')
  return {
    name,
    definition: {
      name,
      ...(title !== undefined && { title }),
      description: typeof description === 'string' ? description : description([], name),
      inputSchema: input.json,
      ...(output !== undefined && { outputSchema: output.json }),
      annotations: { readOnlyHint: readOnly, ...annotations },
    },
    ...(options.aliases && { aliases: options.aliases }),
    ...(typeof description !== 'string' && { descriptionFor: description }),
    readOnly,
    idempotent: readOnly || annotations?.idempotentHint === true,
    ...(options.timeoutMs !== undefined && { timeoutMs: options.timeoutMs, timeoutKey: options.timeoutKey }),
    ...('carries' in options && options.carries && { carries: options.carries }),
    ...(options.isolated && { isolated: options.isolated }),
    ...(input.read === undefined && { checkedBySchema: true }),
    async run(call) {
      const given = call.input.arguments.value
      const reading = input.read ? input.read(given) : { value: given }
      const read = reading instanceof Promise ? await reading : reading
      if ('refusal' in read) throw read.refusal
      try {
        return await resultFrom(name, await run(read.value, contextOf(name, call)), output)
      } catch (thrown) {
        // The request named this tool, which exists: what does not exist is named in its arguments, and a JSON-RPC
        // error for that would end the run of many agents.
        if (thrown instanceof ToolwayError && thrown.kind.malformed) return refusedResult(thrown)
        if (thrown instanceof ToolwayError || thrown instanceof ServerError) throw thrown
        if (call.signal.aborted) throw call.signal.reason
        return explain(thrown)
      }
    },
  }
}

type AnyToolOptions = ToolOptions<z.ZodObject, z.ZodObject | undefined>

interface Parts {
  readonly inputSchema: ToolSchema
  readonly outputSchema: ToolSchema | undefined
  run(args: unknown, context: ToolContext): unknown
  /** What becomes of an exception. */
  explain(thrown: unknown): Result
}

const noArguments: ToolSchema = { type: 'object', properties: {}, additionalProperties: false }

/** What the two forms differ in. */
function partsOf(options: HandlerOptions<ToolSchema, ToolSchema> | AnyToolOptions): Parts {
  if ('handler' in options) {
    const { inputSchema = noArguments, outputSchema, handler } = options
    const run = (args: unknown, context: ToolContext) => handler(args as never, context)
    const explain = (thrown: unknown) => {
      const text = thrown instanceof Error ? thrown.message : String(thrown)
      return resultOf({ content: [{ type: 'text', text: text || 'The tool failed.' }], isError: true })
    }
    return { inputSchema, outputSchema, run, explain }
  }
  const { name, input, output } = options
  return {
    inputSchema: input as unknown as ToolSchema,
    outputSchema: output as unknown as ToolSchema | undefined,
    run: (args, context) => options.run(args as never, context),
    // Its own words may hold secrets, so only our own errors speak for themselves.
    explain(thrown) {
      const sentence = `${name} failed unexpectedly; the log of Toolway has the cause.`
      throw new ToolwayError('INTERNAL', sentence, { cause: thrown })
    },
  }
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

async function resultFrom(name: string, answer: unknown, output: CompiledSchema | undefined): Promise<Result> {
  if (isResult(answer)) return answer
  if (output !== undefined) {
    const read = output.read ? await output.read(answer) : { value: answer }
    if ('value' in read && isObject(read.value)) return structuredResult(read.value)
    const cause = 'refusal' in read ? read.refusal : undefined
    throw new ToolwayError('INTERNAL', `${name} returned a result that violates its output schema.`, { cause })
  }
  if (typeof answer === 'string') return textResult(answer)
  if (areBlocks(answer)) return resultOf({ content: answer })
  if (isObject(answer))
    return 'content' in answer && areBlocks(answer.content) ? resultOf(answer) : structuredResult(answer)
  throw new ToolwayError('INTERNAL', `${name} returned neither text nor content blocks nor an object nor a result.`)
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const blockTypes = ['text', 'image', 'audio', 'resource', 'resource_link']

const areBlocks = (value: unknown): value is readonly Content[] =>
  Array.isArray(value) && value.every((block) => isObject(block) && blockTypes.includes(block.type as string))

const isResult = (answer: unknown): answer is Result => isObject(answer) && answer.body instanceof Json
