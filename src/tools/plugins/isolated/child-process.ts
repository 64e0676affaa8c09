import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Call, Caller } from '../../../core/call.ts'
import type { Clock } from '../../../core/clock.ts'
import { deadline, endWith } from '../../../core/deadline.ts'
import { type ErrorCode, type ErrorDetails, errorKinds, ToolwayError } from '../../../core/errors.ts'
import type { Log } from '../../../core/log.ts'
import { type Result, type ResultBody, resultOf } from '../../../core/result.ts'
import { isRecord } from '../../../lib/is-record.ts'
import { ownGroup, signalGroup } from '../../../process/programs.ts'

/** Records one process, so that it is ended at the next start if Toolway is killed. */
export interface ProcessRegistration {
  /** Environment variables that mark the process and all its descendants. */
  readonly environment: Readonly<Record<string, string>>
  started(pid: number): void
  /** Also ends processes that the process has left behind. */
  ended(): void
}

interface IsolatedPluginOptions {
  readonly file: string
  readonly variables: readonly string[]
  readonly modules: { readonly library: URL; readonly child: URL }
  readonly registerProcess?: (() => ProcessRegistration) | undefined
  readonly clock: Clock
  readonly log: Log
}

const startMs = 20_000
/** How long a call may take to stop after it was cancelled. */
const graceMs = 1_000
const idleMs = 600_000
const memory = '--max-old-space-size=512'

interface Running {
  readonly process: ChildProcess
  readonly ready: Promise<void>
  readonly waiting: Map<number, PromiseWithResolvers<Result>>
  /** Each resolves when a cancelled call has stopped, or the child was killed because it did not. */
  readonly cancelling: Set<Promise<void>>
}

/** A plugin's child process. It starts with the first call, runs until it is idle, and is killed if it hangs. */
export function createIsolatedPlugin(options: IsolatedPluginOptions) {
  const { file, clock, log } = options
  let current: Running | undefined
  let idle: Disposable | undefined
  let count = 0
  let over = false

  function start(): Running {
    const { child, library } = options.modules
    const registration = options.registerProcess?.()
    const process = fork(fileURLToPath(child), [], {
      env: { ...environment(options.variables), ...registration?.environment },
      execArgv: [memory, '--disable-sigusr1'],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      ...ownGroup,
    })
    const ready = Promise.withResolvers<void>()
    const running: Running = { process, ready: ready.promise, waiting: new Map(), cancelling: new Set() }
    if (process.pid !== undefined) registration?.started(process.pid)
    ready.promise.catch(() => {})
    for (const stream of [process.stdout, process.stderr]) {
      stream?.on('data', (output: Buffer) =>
        log.debug({ plugin: file, output: output.toString('utf8', 0, 2_000) }, 'plugin output'),
      )
    }
    process.on('message', (message: unknown) => {
      if (!isFromChild(message)) log.debug({ plugin: file }, 'plugin sent an invalid message')
      else if (message.kind === 'ready') ready.resolve()
      else if (message.kind === 'broken') ready.reject(new ToolwayError('SERVER_UNAVAILABLE', message.problem))
      else settle(running, message)
    })
    process.on('error', (error) => ready.reject(gone(error.message)))
    process.on('exit', (code, signal) => {
      if (current === running) current = undefined
      registration?.ended()
      const error = gone(signal ?? `code ${code}`)
      ready.reject(error)
      for (const { reject } of running.waiting.values()) reject(error)
    })
    send(running, { kind: 'load', file, library: library.href })
    return running
  }

  const gone = (how: string) =>
    new ToolwayError(
      'OUTCOME_UNKNOWN',
      `The process that runs this tool ended (${how}) before the call completed; the tool may have run.`,
    )

  function settle(running: Running, message: Extract<FromChild, { id: number }>): void {
    const waiting = running.waiting.get(message.id)
    running.waiting.delete(message.id)
    if (message.kind === 'result') waiting?.resolve(resultOf(message.body))
    else waiting?.reject(received(message.error))
    if (running.waiting.size > 0 || over) return
    idle?.[Symbol.dispose]()
    idle = clock.after(idleMs, () => {
      if (running.waiting.size === 0) end(running)
    })
  }

  /** Cancels a call. If the call does not stop in time, kills the child, which also ends its other calls. */
  function cancel(running: Running, id: number): void {
    send(running, { kind: 'cancel', id })
    const decided = Promise.withResolvers<void>()
    const timer = clock.after(graceMs, () => {
      if (running.waiting.has(id)) {
        log.warn({ plugin: file }, 'plugin tool did not stop when cancelled; killing its process')
        end(running)
      }
      decided.resolve()
    })
    running.waiting.get(id)?.promise.then(
      () => decided.resolve(),
      () => decided.resolve(),
    )
    running.cancelling.add(decided.promise)
    void decided.promise.then(() => {
      timer[Symbol.dispose]()
      running.cancelling.delete(decided.promise)
    })
  }

  /** The child for a new call. Waits while a cancelled call may still cause the child to be killed. */
  async function usable(signal: AbortSignal): Promise<Running> {
    while (current && current.cancelling.size > 0) await endWith(signal, Promise.all(current.cancelling))
    if (over) throw gone('Toolway stopped it')
    idle?.[Symbol.dispose]()
    current ??= start()
    return current
  }

  return {
    async run(tool: string, call: Call): Promise<Result> {
      const { signal, caller, input } = call
      signal.throwIfAborted()
      const running = await usable(signal)
      await readyInTime(running, signal)
      const id = ++count
      const answer = Promise.withResolvers<Result>()
      // Avoid an unhandled rejection: the caller may have stopped waiting by the time the call fails.
      answer.promise.catch(() => {})
      running.waiting.set(id, answer)
      const stop = () => cancel(running, id)
      signal.addEventListener('abort', stop, { once: true })
      const { peer: _, ...sent } = caller
      const { meta, arguments: args } = input
      send(running, { kind: 'call', id, tool, callId: call.id, arguments: args.value, meta, caller: sent })
      try {
        return await endWith(signal, answer.promise)
      } finally {
        signal.removeEventListener('abort', stop)
      }
    },
    async [Symbol.asyncDispose]() {
      over = true
      idle?.[Symbol.dispose]()
      const running = current
      if (!running) return
      const exit = new Promise((ended) => running.process.once('exit', ended))
      end(running)
      await exit
    },
  }

  async function readyInTime(running: Running, signal: AbortSignal): Promise<void> {
    const sentence = `The process for the plugin ${file} did not start within ${startMs / 1000} s (a fixed limit).`
    using limit = deadline(clock, startMs, () => new ToolwayError('TIMEOUT', sentence), signal)
    try {
      await endWith(limit.signal, running.ready)
    } catch (thrown) {
      // Kill the process, so that the next call starts a new one.
      if (!signal.aborted) end(running)
      throw thrown
    }
  }

  function end(running: Running): void {
    if (current === running) current = undefined
    const { pid, exitCode, signalCode } = running.process
    if (pid === undefined || exitCode !== null || signalCode !== null) return
    signalGroup(pid, 'SIGKILL')
  }
}

/** Sends a message, unless the child has exited: its exit already rejects all pending calls. */
function send({ process: child }: Running, message: ToChild): void {
  if (child.connected) child.send(message, () => {})
}

const usual = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'TERM', 'SystemRoot']

const environment = (variables: readonly string[]) =>
  Object.fromEntries(
    [...usual, ...variables].flatMap((name) => (name in process.env ? [[name, process.env[name]]] : [])),
  )

/** The error that a child sent. Replaces an unknown code, which a plugin may have invented. */
const received = ({ code, message, details, cause }: SentError): ToolwayError =>
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

export type FromChild =
  | { readonly kind: 'ready' }
  | { readonly kind: 'broken'; readonly problem: string }
  | { readonly kind: 'result'; readonly id: number; readonly body: ResultBody }
  | { readonly kind: 'failure'; readonly id: number; readonly error: SentError }

/** An error sent by a child process. The cause is only logged and never sent to the caller. */
export interface SentError {
  readonly code: ErrorCode
  readonly message: string
  readonly details: Omit<ErrorDetails, 'cause'>
  readonly cause?: string
}

/** Validates a message: the plugin has access to the same channel and may send anything. */
function isFromChild(message: unknown): message is FromChild {
  if (!isRecord(message)) return false
  const { kind, problem, id, body, error } = message
  if (kind === 'ready') return true
  if (kind === 'broken') return typeof problem === 'string'
  if (typeof id !== 'number') return false
  return kind === 'result' ? isRecord(body) : kind === 'failure' && isError(error)
}

const isError = (error: unknown): boolean =>
  isRecord(error) && typeof error.code === 'string' && typeof error.message === 'string'
