import { randomUUID } from 'node:crypto'
import type { Access, Served } from '../core/access.ts'
import type { Caller, Peer } from '../core/call.ts'
import { abortWith, waitFor } from '../core/deadline.ts'
import type { Definition } from '../core/entry.ts'
import { invalidArguments, ServerError, ToolwayError } from '../core/errors.ts'
import { Json } from '../core/json.ts'
import type { Content, ResultBody } from '../core/result.ts'
import { isRecord } from '../lib/is-record.ts'

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
  /** Overrides the tool's timeout. */
  readonly timeoutMs?: number | undefined
  /** Aborting this signal cancels the call, including on the server. */
  readonly signal?: AbortSignal | undefined
  /** Receives the tool's progress. For a batch, receives the number of finished calls. */
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

export interface ProgramAccessOptions {
  readonly access: Pick<Access, 'view' | 'handle'>
  /** The local user, acting as this agent. */
  localAs(agent: string | undefined): Caller
}

export function programAccess({ access, localAs }: ProgramAccessOptions): ProgramAccess {
  const callerFor = ({ agent, principal }: ActingAs): Caller => {
    const local = localAs(agent)
    return principal === undefined ? local : { ...local, principal, session: `local ${principal}`, admin: false }
  }

  const run = async (
    caller: Caller,
    find: () => Promise<Served>,
    args: Readonly<Record<string, unknown>>,
    { timeoutMs, signal, onProgress }: CallOptions,
  ): Promise<ToolResult> => {
    const given = jsonArguments(args)
    using cancelling = abortWith(signal, cancelled)
    using _ = holdOpen()
    const { entry } = await waitFor(find(), cancelling.signal)
    const id = randomUUID()
    const { body } = await access.handle({
      id,
      caller,
      entry,
      input: { arguments: given, meta: onProgress ? { progressToken: id } : {} },
      signal: cancelling.signal,
      peer: peerFor(onProgress),
      timeoutMs,
    })
    return body.value as ToolResult
  }

  return {
    async list(options = {}) {
      const view = access.view(callerFor(options))
      using _ = holdOpen()
      await view.ready()
      const { server } = options
      const tools = view.shown('direct').filter(({ entry }) => server === undefined || entry.server === server)
      return tools.map(({ name, entry, definition }) => ({
        ...definition,
        name,
        server: entry.server,
        tool: entry.name,
      }))
    },
    async call(tool, args = {}, options = {}) {
      const caller = callerFor(options)
      return run(caller, () => access.view(caller).resolve('tool', tool), args, options)
    },
    async batch(calls, options = {}) {
      const caller = callerFor(options)
      const { onProgress, ...others } = options
      let answered = 0
      const answer = async ({ server, tool, args = {} }: BatchCall): Promise<BatchAnswer> => {
        try {
          const result = await run(caller, () => access.view(caller).find('tool', server, tool), args, others)
          return { server, tool, ok: result.isError !== true, result }
        } catch (thrown) {
          return { server, tool, ok: false, error: errorOf(thrown) }
        } finally {
          onProgress?.({ progress: ++answered, total: calls.length })
        }
      }
      const results = await Promise.all(calls.map(answer))
      if (options.signal?.aborted) throw cancelled()
      return { results }
    },
  }
}

/**
 * The arguments as JSON, as from any other caller. What is checked and recorded is therefore what a server gets, although
 * a value such as `NaN`, a date or an object with `toJSON` is something else in JSON.
 */
function jsonArguments(args: unknown): Json<Record<string, unknown>> {
  const sentence = 'The arguments must be an object that can be written as JSON'
  let json: Json
  try {
    json = Json.parse(JSON.stringify(args ?? {}))
  } catch (thrown) {
    throw invalidArguments(`${sentence}: ${(thrown as Error).message}`)
  }
  if (!isRecord(json.value)) throw invalidArguments(`${sentence}.`)
  return json as Json<Record<string, unknown>>
}

/** The error from one call in a batch. A server's own error has a numeric code; Toolway's errors have a string code. */
function errorOf(thrown: unknown): { readonly code: string | number; readonly message: string } {
  if (thrown instanceof ServerError) return thrown.error.value
  const { data, message } = ToolwayError.from(thrown)
  return { ...data, message }
}

/** Keeps the process running while a program waits for a call: the gateway's timers do not keep it running. */
function holdOpen(): Disposable {
  const timer = setInterval(() => {}, 2 ** 31 - 1)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

const cancelled = () => new ToolwayError('CANCELLED', 'The program cancelled this call.')

const peerFor = (onProgress: CallOptions['onProgress']): Peer => ({
  rounds: false,
  logLevel: undefined,
  notify(method, params) {
    if (method !== 'notifications/progress') return
    const { progressToken, ...progress } = params.value as Progress & { progressToken?: unknown }
    onProgress?.(progress)
  },
  ask: (method) =>
    Promise.reject(
      new ToolwayError(
        'INVALID_ARGUMENTS',
        `${method} cannot be sent to a program: it declares no client capabilities.`,
      ),
    ),
})
