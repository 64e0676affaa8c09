import * as z from 'zod'
import type { Call, Caller, Handler } from '../core/call.ts'
import type { Definition } from '../core/entry.ts'
import { ServerError, ToolwayError } from '../core/errors.ts'
import { Json } from '../core/json.ts'
import { type Result, refusedResult, structuredResult, textResult } from '../core/result.ts'
import type { ServerSummary } from '../core/source-status.ts'
import { argumentsRefused } from './arguments.ts'

/** What a tool may know of the call that runs it. */
export interface ToolContext {
  readonly call: Call
  /** Aborted when nobody waits for the answer any more: hand it to whatever takes long. */
  readonly signal: AbortSignal
  readonly caller: Caller
}

/** Hints for clients, as the protocol names them. */
export interface ToolAnnotations {
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
  /** It only runs other calls, which are counted themselves. */
  readonly carries?: true
  /** It wants to run in a process of its own; whoever loads it sees to that. */
  readonly isolated?: Isolated
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
  /** It only runs other calls, which are counted themselves. */
  readonly carries?: true
  /** For tools of plugins: runs in a child process, which is ended when it does not stop in time. */
  readonly isolated?: Isolated
  run(args: z.output<Input>, context: ToolContext): Answer<Output> | Promise<Answer<Output>>
}

/**
 * Makes a tool out of a function. Arguments reach it parsed and typed; bad ones are refused before it runs.
 * To refuse, throw a `ToolwayError` whose sentence tells a model what to do.
 *
 * @example
 * ```ts
 * export const dice = defineTool({
 *   name: 'roll_dice',
 *   description: 'Rolls dice and adds them up.',
 *   input: z.object({
 *     count: z.int().min(1).max(100).default(1).describe('How many dice.'),
 *     sides: z.int().min(2).default(6),
 *   }),
 *   output: z.object({ rolls: z.array(z.int()), total: z.int() }),
 *   readOnly: true,
 *   run: ({ count, sides }) => {
 *     const rolls = Array.from({ length: count }, () => randomInt(1, sides + 1))
 *     return { rolls, total: rolls.reduce((sum, roll) => sum + roll, 0) }
 *   },
 * })
 * ```
 */
export function defineTool<Input extends z.ZodObject, Output extends z.ZodObject | undefined = undefined>(
  options: ToolOptions<Input, Output>,
): Tool {
  const { name, title, description, output, annotations, readOnly = annotations?.readOnlyHint ?? false } = options
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    throw new TypeError(`A tool cannot be named "${name}": up to 64 letters, digits, "_" and "-".`)
  }
  const input = strict(options.input)
  const inputSchema = jsonSchema(input, 'input')
  const outputSchema = output && jsonSchema(output, 'output')
  return {
    name,
    definition: {
      name,
      ...(title !== undefined && { title }),
      description: typeof description === 'string' ? description : description([], name),
      inputSchema,
      ...(outputSchema !== undefined && { outputSchema }),
      annotations: { readOnlyHint: readOnly, ...annotations },
    },
    ...(options.aliases && { aliases: options.aliases }),
    ...(typeof description !== 'string' && { descriptionFor: description }),
    readOnly,
    idempotent: readOnly || annotations?.idempotentHint === true,
    ...(options.timeoutMs !== undefined && { timeoutMs: options.timeoutMs }),
    ...(options.carries && { carries: options.carries }),
    ...(options.isolated && { isolated: options.isolated }),
    async run(call) {
      const given = call.input.arguments.value
      const read = input.safeParse(given)
      if (!read.success) throw argumentsRefused(name, read.error, inputSchema, given)
      const context: ToolContext = { call, signal: call.signal, caller: call.caller }
      try {
        return resultFrom(name, await options.run(read.data as z.output<Input>, context), output)
      } catch (thrown) {
        // The request named this tool, which exists: what does not exist is named in its arguments, and a JSON-RPC
        // error for that would end the run of many agents.
        if (thrown instanceof ToolwayError && thrown.kind.malformed) return refusedResult(thrown)
        throw failure(name, thrown, call.signal)
      }
    },
  }
}

/** A misspelt field must not be dropped in silence; a schema that says itself what to do with others is left alone. */
const strict = (input: z.ZodObject): z.ZodObject => (input.def.catchall === undefined ? input.strict() : input)

/** Without `$schema`: the protocol's default is the same draft, and some clients stumble over the field. */
function jsonSchema(schema: z.ZodObject, io: 'input' | 'output'): Readonly<Record<string, unknown>> {
  const { $schema, ...rest } = z.toJSONSchema(schema, { io, target: 'draft-2020-12', override: withoutNoise })
  return rest
}

/** Every whole number is a safe one; saying so in each schema only costs tokens. */
function withoutNoise({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }) {
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}

function resultFrom(name: string, answer: unknown, output: z.ZodObject | undefined): Result {
  if (isResult(answer)) return answer
  if (output !== undefined) {
    const read = output.safeParse(answer)
    if (read.success) return structuredResult(read.data)
    throw new ToolwayError('INTERNAL', `${name} gave an answer that its own output schema forbids: mend the tool.`, {
      cause: read.error,
    })
  }
  if (typeof answer === 'string') return textResult(answer)
  if (typeof answer === 'object' && answer !== null && !Array.isArray(answer)) return structuredResult(answer)
  throw new ToolwayError(
    'INTERNAL',
    `${name} gave neither text nor an object nor a result as its answer: mend the tool.`,
  )
}

/** What to throw for what a tool threw: its own words may hold secrets, so only our own errors speak for themselves. */
function failure(name: string, thrown: unknown, signal: AbortSignal): unknown {
  if (thrown instanceof ToolwayError || thrown instanceof ServerError) return thrown
  if (signal.aborted) return signal.reason
  return new ToolwayError('INTERNAL', `${name} failed unexpectedly; the log of Toolway has the cause.`, {
    cause: thrown,
  })
}

const isResult = (answer: unknown): answer is Result =>
  typeof answer === 'object' && answer !== null && 'body' in answer && answer.body instanceof Json
