import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import * as z from 'zod'
import type { Call, Caller } from '../../../core/call.ts'
import type { Clock } from '../../../core/clock.ts'
import { deadline, endWith, settles } from '../../../core/deadline.ts'
import { type ErrorCode, type ErrorDetails, errorKinds, ToolwayError } from '../../../core/errors.ts'
import type { Log } from '../../../core/log.ts'
import { type Result, type ResultBody, resultOf } from '../../../core/result.ts'
import { isRecord } from '../../../lib/is-record.ts'
import type { RegisteredProcess } from '../../../process/orphan-reaper.ts'
import { ownGroup, signalGroup } from '../../../process/programs.ts'

interface IsolatedPluginOptions extends Omit<PluginOptions, 'load'> {
  readonly file: string
  readonly variables: readonly string[]
}

/** What child processes of plugins need, and where they are recorded. */
export interface PluginOptions {
  /** `library` is the module that plugins import as `toolway`; `child` is the program that child processes run. */
  readonly modules: { readonly library: URL; readonly child: URL }
  /** Called for each child process that is started. */
  readonly registerProcess?: (() => RegisteredProcess) | undefined
  readonly clock: Clock
  readonly log: Log
  /** Replaces `import` in tests, because the test runner overrides it. */
  load?(url: string): Promise<Record<string, unknown>>
}

const pluginStartMs = 20_000
/** How long a call may take to stop after it was cancelled. */
const cancelGraceMs = 1_000
const pluginIdleMs = 600_000
const memoryOption = '--max-old-space-size=512'

/** A plugin's child process. It starts with the first call, runs until it is idle, and is killed if it hangs. */
export class IsolatedPlugin implements AsyncDisposable {
  readonly #options: IsolatedPluginOptions
  #current: PluginProcess | undefined
  #idle: Disposable | undefined
  #count = 0
  #over = false

  constructor(options: IsolatedPluginOptions) {
    this.#options = options
  }

  async run(tool: string, call: Call): Promise<Result> {
    const { signal, caller, input } = call
    signal.throwIfAborted()
    const running = await this.#usable(signal)
    await this.#readyInTime(running, signal)
    const id = ++this.#count
    const answer = Promise.withResolvers<Result>()
    // Avoid an unhandled rejection: the caller may have stopped waiting by the time the call fails.
    answer.promise.catch(() => {})
    running.waiting.set(id, answer)
    const stop = () => this.#cancel(running, id, answer.promise)
    signal.addEventListener('abort', stop, { once: true })
    const { peer: _, ...sent } = caller
    const { meta, arguments: args } = input
    running.send({ kind: 'call', id, tool, callId: call.id, arguments: args.value, meta, caller: sent })
    try {
      return await endWith(signal, answer.promise)
    } finally {
      signal.removeEventListener('abort', stop)
      this.#rest(running)
    }
  }

  /** The child for a new call. Waits while a cancelled call may still cause the child to be killed. */
  async #usable(signal: AbortSignal): Promise<PluginProcess> {
    while (this.#current?.isAlive && this.#current.cancelling.size > 0)
      await endWith(signal, Promise.all(this.#current.cancelling))
    if (this.#over) throw endedError('Toolway stopped it')
    this.#idle?.[Symbol.dispose]()
    if (!this.#current?.isAlive) this.#current = new PluginProcess(this.#options)
    return this.#current
  }

  async #readyInTime(running: PluginProcess, signal: AbortSignal): Promise<void> {
    const { file, clock } = this.#options
    const sentence = `The process for the plugin ${file} did not start within ${pluginStartMs / 1000} s (a fixed limit).`
    using limit = deadline(clock, pluginStartMs, () => new ToolwayError('TIMEOUT', sentence), signal)
    try {
      await endWith(limit.signal, running.ready.promise)
    } catch (thrown) {
      // Kill the process, so that the next call starts a new one.
      if (!signal.aborted) running.kill()
      throw thrown
    }
  }

  /** Cancels a call. If the call does not stop in time, kills the child, which also ends its other calls. */
  #cancel(running: PluginProcess, id: number, answer: Promise<Result>): void {
    const { file, clock, log } = this.#options
    running.send({ kind: 'cancel', id })
    const stopped = settles(answer, cancelGraceMs, clock).then((isStopped) => {
      running.cancelling.delete(stopped)
      if (isStopped) return this.#rest(running)
      log.warn({ plugin: file }, 'plugin tool did not stop when cancelled; killing its process')
      running.kill()
    })
    running.cancelling.add(stopped)
  }

  /** Ends the child if no call comes for some time. */
  #rest(running: PluginProcess): void {
    if (running.waiting.size > 0 || this.#over) return
    this.#idle?.[Symbol.dispose]()
    this.#idle = this.#options.clock.after(pluginIdleMs, () => {
      if (running.waiting.size === 0) running.kill()
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over = true
    this.#idle?.[Symbol.dispose]()
    this.#current?.kill()
    await this.#current?.ended.promise
  }
}

/** One run of the child. */
class PluginProcess {
  /** Each resolves when a cancelled call has stopped, or the child was killed because it did not. */
  readonly cancelling = new Set<Promise<void>>()
  readonly waiting = new Map<number, PromiseWithResolvers<Result>>()
  isAlive = true
  readonly #process: ChildProcess
  readonly ready = Promise.withResolvers<void>()
  readonly ended = Promise.withResolvers<void>()

  constructor({ file, variables, modules, registerProcess, log }: IsolatedPluginOptions) {
    const registration = registerProcess?.()
    const child = fork(fileURLToPath(modules.child), [], {
      env: { ...environment(variables), ...registration?.environment },
      execArgv: [memoryOption, '--disable-sigusr1'],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      ...ownGroup,
    })
    this.#process = child
    this.ready.promise.catch(() => {})
    if (child.pid !== undefined) registration?.started(child.pid)
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (output: Buffer) =>
        log.debug({ plugin: file, output: output.toString('utf8', 0, 2_000) }, 'plugin output'),
      )
    }
    child.on('message', (message: unknown) => {
      const { data: received } = fromChild.safeParse(message)
      if (received) this.#receive(received)
      else log.debug({ plugin: file }, 'plugin sent an invalid message')
    })
    child.on('error', (error) => this.ready.reject(endedError(error.message)))
    child.on('exit', (code, signal) => {
      this.isAlive = false
      registration?.ended()
      const error = endedError(signal ?? `code ${code}`)
      this.ready.reject(error)
      for (const { reject } of this.waiting.values()) reject(error)
      this.ended.resolve()
    })
    this.send({ kind: 'load', file, library: modules.library.href })
  }

  /** Sends a message, unless the child has exited: its exit already rejects all pending calls. */
  send(message: ToChild): void {
    if (this.#process.connected) this.#process.send(message, () => {})
  }

  kill(): void {
    this.isAlive = false
    const { pid, exitCode, signalCode } = this.#process
    if (pid === undefined) this.ended.resolve()
    else if (exitCode === null && signalCode === null) signalGroup(pid, 'SIGKILL')
  }

  #receive(message: FromChild): void {
    if (message.kind === 'ready') this.ready.resolve()
    else if (message.kind === 'broken') this.ready.reject(new ToolwayError('SERVER_UNAVAILABLE', message.problem))
    else {
      const waiting = this.waiting.get(message.id)
      this.waiting.delete(message.id)
      if (message.kind === 'result') waiting?.resolve(resultOf(message.body))
      else waiting?.reject(receivedError(message.error))
    }
  }
}

const endedError = (how: string) =>
  new ToolwayError(
    'OUTCOME_UNKNOWN',
    `The process that runs this tool ended (${how}) before the call completed; the tool may have run.`,
  )

const usualVariables = 'PATH HOME USER LOGNAME SHELL LANG LC_ALL TZ TMPDIR TERM SystemRoot'.split(' ')

const environment = (variables: readonly string[]) =>
  Object.fromEntries(
    [...usualVariables, ...variables].flatMap((name) => (name in process.env ? [[name, process.env[name]]] : [])),
  )

/** The error that a child sent. Replaces an unknown code, which a plugin may have invented. */
const receivedError = ({ code, message, details, cause }: SentError): ToolwayError =>
  new ToolwayError(Object.hasOwn(errorKinds, code) ? code : 'INTERNAL', message, { ...details, cause })

export type ToChild =
  | { readonly kind: 'load'; readonly file: string; readonly library: string }
  | {
      readonly kind: 'call'
      readonly id: number
      readonly tool: string
      readonly callId: string
      readonly arguments: Readonly<Record<string, unknown>>
      readonly meta: Readonly<Record<string, unknown>>
      readonly caller: Omit<Caller, 'peer'>
    }
  | { readonly kind: 'cancel'; readonly id: number }

/** An error sent by a child process. The cause is only logged and never sent to the caller. */
export interface SentError {
  readonly code: ErrorCode
  readonly message: string
  readonly details: Omit<ErrorDetails, 'cause'>
  readonly cause?: string
}

const isError = (error: unknown): boolean =>
  isRecord(error) && typeof error.code === 'string' && typeof error.message === 'string'

/** Messages from a child. They are validated, because the plugin has access to the same channel and may send anything. */
const fromChild = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('ready') }),
  z.object({ kind: z.literal('broken'), problem: z.string() }),
  z.object({ kind: z.literal('result'), id: z.number(), body: z.custom<ResultBody>(isRecord) }),
  z.object({ kind: z.literal('failure'), id: z.number(), error: z.custom<SentError>(isError) }),
])

export type FromChild = z.output<typeof fromChild>
