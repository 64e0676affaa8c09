import { randomUUID } from 'node:crypto'
import type { Access, Served } from '../core/access.ts'
import { type Caller, type Peer, quietPeer } from '../core/call.ts'
import { abortWith, endWith } from '../core/deadline.ts'
import type { Definition } from '../core/entry.ts'
import { invalidArguments, ServerError, ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Content, ResultBody } from '../core/result.ts'
import { Json } from '../json/json.ts'
import { jsonValue } from '../json/parse-json.ts'
import { isRecord } from '../lib/is-record.ts'
import { toolwayError } from './errors.ts'

/** Access for the program that embeds the gateway. Its calls go through the same pipeline as other callers' calls. */
export interface ProgramAccess {
  /** Lists the tools that the agent may use. Waits up to `discovery.listDeadline` for servers that are starting. */
  list(options?: ListOptions): Promise<readonly ListedTool[]>
  /**
   * Runs a tool and returns its result, even a result with `isError`. The tool can be named in any accepted spelling.
   * Rejects with a `ToolwayError`, which has a `code`, if the call is denied or fails, and with a `ServerError` if the
   * server responds with an error.
   */
  call(tool: string, args?: Readonly<Record<string, unknown>>, options?: CallOptions): Promise<ToolResult>
  /** Runs calls concurrently, like `execute_tools`. Results are in call order. Rejects only if cancelled. */
  batch(calls: readonly BatchCall[], options?: CallOptions): Promise<BatchResult>
}

/** The identity that policy, limits, cache and audit use. */
export interface ActingAs {
  /** The agent. By default, it is chosen in the same way as for a client that does not name one. */
  readonly agent?: string | undefined
  /** The user on whose behalf the program acts; `local` by default. Caches and sessions are kept per principal. */
  readonly principal?: string | undefined
}

export interface ListOptions extends ActingAs {
  /** If set, only this server's tools are listed. */
  readonly server?: string | undefined
}

export interface CallOptions extends ActingAs {
  /** Overrides the tool's timeout. `Infinity` waits for almost 25 days. */
  readonly timeoutMs?: number | undefined
  /** Aborting this signal cancels the call, including on the server. */
  readonly signal?: AbortSignal | undefined
  /**
   * Receives the tool's progress. For a batch, receives the number of finished calls. What it throws is logged and does
   * not affect the calls.
   */
  readonly onProgress?: ((progress: Progress) => void) | undefined
}

export interface Progress {
  readonly progress: number
  readonly total?: number
  readonly message?: string
}

/** A tool as clients see it, together with its server. */
export interface ListedTool extends Definition {
  /** The name to pass to `call`. */
  readonly name: string
  readonly server: string
  /** The tool's name on its server. */
  readonly tool: string
}

/** The result of `tools/call`. */
export interface ToolResult extends ResultBody {
  readonly content: readonly Content[]
}

export interface BatchCall {
  readonly server: string
  readonly tool: string
  readonly args?: Readonly<Record<string, unknown>>
}

export interface BatchResult {
  readonly results: readonly BatchAnswer[]
}

export type BatchAnswer = { readonly server: string; readonly tool: string } & (
  | { readonly ok: boolean; readonly result: ToolResult }
  | { readonly ok: false; readonly error: { readonly code: string | number; readonly message: string } }
)

interface ProgramAccessOptions {
  readonly access: Pick<Access, 'view' | 'handle'>
  localAs(agent: string | undefined): Caller
  isClosed(): boolean
  readonly log: Log
}

export function programAccess({ access, localAs, isClosed, log }: ProgramAccessOptions): ProgramAccess {
  const callerFor = ({ agent, principal }: ActingAs): Caller => {
    if (isClosed())
      throw new ToolwayError('SERVER_UNAVAILABLE', 'The gateway was disposed of, so it runs no more calls.')
    // Programs in JavaScript also use null for an absent option.
    const local = localAs(agent ?? undefined)
    const user = principal ?? undefined
    return user === undefined ? local : { ...local, principal: user, session: `local ${user}`, admin: false }
  }

  const run = async (
    caller: Caller,
    find: () => Promise<Served>,
    args: Readonly<Record<string, unknown>>,
    { timeoutMs, signal, onProgress }: CallOptions,
  ): Promise<ToolResult> => {
    checkTimeout(timeoutMs)
    const given = programArguments(args)
    using cancelling = abortWith(signal, programCancelled)
    using _ = holdOpen()
    try {
      const { entry, restore } = await endWith(cancelling.signal, find())
      const id = randomUUID()
      const { body } = await access.handle({
        id,
        caller,
        entry,
        input: { arguments: restore ? restore(given) : given, meta: onProgress ? { progressToken: id } : {} },
        signal: cancelling.signal,
        peer: programPeer(onProgress, log),
        timeoutMs,
        timeoutKey: 'timeoutMs',
      })
      // A copy: the cache, identical calls or the tool itself may hold the value.
      return jsonValue(body.bytes.toString()) as ToolResult
    } catch (thrown) {
      if (thrown instanceof ServerError) throw thrown
      throw toolwayError(thrown, 'call by a program', log)
    }
  }

  return {
    async list(options = {}) {
      checkProgramOptions('list', options, ['agent', 'principal', 'server'])
      const view = access.view(callerFor(options))
      using _ = holdOpen()
      await view.ready()
      return view
        .shown('direct')
        .map(({ name, entry, definition }) => ({ ...definition, name, server: entry.server, tool: entry.name }))
        .filter(({ server }) => server === (options.server ?? server))
    },
    async call(tool, args = {}, options = {}) {
      if (typeof tool !== 'string') throw new TypeError('The first argument of call must be the name of a tool.')
      checkProgramOptions('call', options, callOptions)
      const caller = callerFor(options)
      return run(caller, () => access.view(caller).resolve('tool', tool), args, options)
    },
    async batch(calls, options = {}) {
      if (!Array.isArray(calls)) throw new TypeError('The first argument of batch must be a list of calls.')
      checkProgramOptions('batch', options, callOptions)
      const caller = callerFor(options)
      const { onProgress, ...others } = options
      checkTimeout(options.timeoutMs)
      let answered = 0
      const answer = async (call: BatchCall): Promise<BatchAnswer> => {
        const { server, tool, args = {} } = isRecord(call) ? call : ({} as BatchCall)
        try {
          if (typeof server !== 'string' || typeof tool !== 'string')
            throw invalidArguments('Each call of a batch needs the names of a server and a tool.')
          const result = await run(caller, () => access.view(caller).find('tool', server, tool), args, others)
          return { server, tool, ok: result.isError !== true, result }
        } catch (thrown) {
          return { server, tool, ok: false, error: batchError(thrown) }
        } finally {
          void reportProgress(onProgress, { progress: ++answered, total: calls.length }, log)
        }
      }
      const results = await Promise.all(calls.map(answer))
      if (options.signal?.aborted) throw programCancelled()
      return { results }
    },
  }
}

/** The error from one call in a batch. A server's own error has a numeric code; Toolway's errors have a string code. */
function batchError(thrown: unknown): { readonly code: string | number; readonly message: string } {
  if (thrown instanceof ServerError) return thrown.error.value
  const { data, message } = ToolwayError.from(thrown)
  return { ...data, message }
}

/** Keeps the process running while a program waits for a call: the gateway's timers do not keep it running. */
function holdOpen(): Disposable {
  const timer = setInterval(() => {}, 2 ** 31 - 1)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

const programCancelled = () => new ToolwayError('CANCELLED', 'The program cancelled this call.')

const callOptions = ['agent', 'principal', 'timeoutMs', 'signal', 'onProgress']

/** With a mistyped option ignored, a call would be made as another agent or user. */
function checkProgramOptions(method: string, options: ListOptions & CallOptions, names: readonly string[]): void {
  if (!isRecord(options)) throw new TypeError(`The options of ${method} must be an object.`)
  const unknown = Object.keys(options).find((name) => !names.includes(name))
  if (unknown !== undefined)
    throw new TypeError(`${method} has no option "${unknown}"; its options are ${names.join(', ')}.`)
  for (const name of ['agent', 'principal', 'server'] as const) {
    const value: unknown = options[name] ?? undefined
    if (value !== undefined && (typeof value !== 'string' || value === ''))
      throw new TypeError(`The option "${name}" of ${method} must be a name.`)
  }
}

function checkTimeout(ms: number | undefined | null): void {
  if (ms === undefined || ms === null || (typeof ms === 'number' && ms > 0)) return
  throw invalidArguments('"timeoutMs" must be a number of milliseconds above 0.')
}

/**
 * Writes the arguments as JSON once, before anything looks at them: what the policy, guards and people check is then
 * what the tool gets, whatever the program does with the object meanwhile.
 */
function programArguments(args: Readonly<Record<string, unknown>>): Json<Record<string, unknown>> {
  let json: Json
  try {
    json = Json.parse(JSON.stringify(args) ?? 'null')
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message.split('\n', 1)[0] : 'unknown reason'
    throw new ToolwayError('INVALID_ARGUMENTS', `The arguments cannot be written as JSON (${reason}).`, {
      cause: thrown,
    })
  }
  if (!isRecord(json.value)) throw invalidArguments('The arguments must be an object.')
  return json as Json<Record<string, unknown>>
}

/** Calls the program's listener. Servers' messages arrive in the caller of this function, which must not fail. */
async function reportProgress(onProgress: CallOptions['onProgress'], progress: Progress, log: Log): Promise<void> {
  try {
    await onProgress?.(progress)
  } catch (err) {
    log.error({ err }, 'onProgress failed')
  }
}

const programPeer = (onProgress: CallOptions['onProgress'], log: Log): Peer =>
  quietPeer(
    (method) =>
      Promise.reject(invalidArguments(`${method} cannot be sent to a program: it declares no client capabilities.`)),
    (params) => {
      const { progressToken, ...progress } = params.value as Progress & { progressToken?: unknown }
      void reportProgress(onProgress, progress, log)
    },
  )
