import * as z from 'zod'
import type { Clock } from '../core/clock.ts'
import type { ExecutionOutcome, Program } from '../core/executor.ts'
import type { Log } from '../core/log.ts'
import { parseJson } from '../json/parse-json.ts'
import { type Frame, messageKinds, type ProgramTask } from './guest/protocol.ts'
import { createHostCalls } from './host-calls.ts'
import { type Limits, RunStopped, type SandboxChild } from './runtime.ts'

/** The outcome of a run, and whether the child can be reused. */
export interface ChildResult extends Pick<ExecutionOutcome, 'status' | 'value' | 'logs' | 'truncated' | 'error'> {
  /** Why the child is unusable and was killed; undefined if it can be reused. */
  readonly broken?: string
}

export interface ChildRun {
  readonly ending: Promise<ChildResult>
  /** The environment's new state; undefined if none arrives. */
  readonly memory: Promise<Buffer | undefined>
}

/** Runs one program in an untrusted child. Counts and validates the child's messages; any violation kills the child. */
export function runInChild(options: {
  readonly child: SandboxChild
  readonly task: ProgramTask
  readonly memory?: Buffer
  readonly host: Program['host']
  readonly signal: AbortSignal
  readonly limits: Limits
  readonly clock: Clock
  readonly log: Log
}): ChildRun {
  const { child, task, signal, limits, clock, log } = options
  const ending = Promise.withResolvers<ChildResult>()
  const memory = Promise.withResolvers<Buffer | undefined>()
  const calls = new AbortController()
  const logs: Buffer[] = []
  let logBytes = 0
  let value: string | undefined
  let messages = 0
  let bytes = 0
  let over = false
  let remembered = false

  const takeCall = createHostCalls({
    host: options.host,
    limits,
    signal: calls.signal,
    log,
    answer: (id, text) => child.send(messageKinds.answer, id, text),
    refuse: (id, refusal) => child.send(messageKinds.refusal, id, JSON.stringify(refusal)),
  })

  const end = (found: Pick<ChildResult, 'status' | 'error' | 'broken'> & Partial<Pick<ChildResult, 'truncated'>>) => {
    if (over) return
    over = true
    watchdog[Symbol.dispose]()
    signal.removeEventListener('abort', stopped)
    calls.abort()
    const shown = found.status === 'ok' ? value : undefined
    ending.resolve({ truncated: [], ...found, value: shown, logs: Buffer.concat(logs).toString() })
    if (found.broken !== undefined) discard()
  }

  const discard = () => {
    memory.resolve(undefined)
    void child.kill()
  }

  const stop = ({ ending, message }: RunStopped) => end({ ...ending, broken: message })
  const stopped = () => stop(RunStopped.from(signal.reason))

  const failed = (message: string) =>
    end({ status: 'error', error: { name: 'SandboxError', message }, broken: message })

  const misbehaved = (what: string) => {
    log.warn({ what }, 'a program tampered with its sandbox')
    failed('The program tampered with its sandbox and was stopped.')
    // Kill the child even if it has already reported its result.
    discard()
  }

  const outOfTime = () =>
    stop(new RunStopped('timeout', `The program exceeded its limit of ${task.cpuMs / 1000} s of CPU time.`))

  const frame = ({ kind, id, payload }: Frame) => {
    messages++
    bytes += kind === messageKinds.memory ? 0 : payload.length
    if (messages > limits.messages || bytes > limits.messageBytes) return misbehaved('too many messages')
    if (kind === messageKinds.memory) {
      // A child may send its state once, after the result, and only if it was requested.
      if (!task.keep || !over || remembered) return misbehaved('an unrequested environment state')
      remembered = true
      return memory.resolve(payload)
    }
    if (over) return
    if (kind === messageKinds.log) {
      logBytes += payload.length
      if (logBytes > limits.logBytes) return misbehaved('too much output')
      logs.push(payload)
    } else if (kind === messageKinds.value) {
      if (value !== undefined) return misbehaved('a second result')
      value = payload.toString()
      if (parseJson(value) === undefined) misbehaved('a value that is not JSON')
    } else if (kind === messageKinds.call) {
      if (!takeCall(id, payload)) misbehaved('an invalid host call')
    } else if (kind === messageKinds.done) {
      const { data: result } = resultSchema.safeParse(parseJson(payload.toString()))
      if (!result) return misbehaved('an invalid result')
      const { broken, ...found } = result
      end({ ...found, broken: broken ? (found.error?.message ?? 'The engine failed.') : undefined })
    } else misbehaved(`a message of kind ${kind}`)
  }

  const watchdog = watchCpu(child, task.cpuMs, clock, outOfTime)
  child.listen({
    frame,
    broken: misbehaved,
    ended() {
      memory.resolve(undefined)
      failed('The sandbox process exited before the program finished.')
    },
  })
  signal.addEventListener('abort', stopped, { once: true })
  if (signal.aborted) stopped()
  else {
    if (options.memory) void child.send(messageKinds.memory, 0, options.memory)
    void child.send(messageKinds.run, 0, JSON.stringify(task))
  }
  return { ending: ending.promise, memory: memory.promise }
}

const position = z.number().int().min(1).max(10_000_000)

/** Matches `ProgramResult`. */
const resultSchema = z.strictObject({
  status: z.enum(['ok', 'error', 'timeout', 'out_of_memory']),
  error: z
    .strictObject({
      name: z.string().max(256),
      message: z.string().max(8192),
      line: position.optional(),
      column: position.optional(),
      code: z.string().max(256).optional(),
    })
    .optional(),
  truncated: z.array(z.string().max(512)).max(4),
  broken: z.boolean().optional(),
})

const pollMs = 50
/** The host's CPU limit, which exceeds the child's: the child measures more precisely and reports better errors. */
const withGrace = (cpuMs: number) => cpuMs * 1.1 + 100

/** Detects that the CPU time is exceeded when the child cannot: during work that the engine cannot interrupt. */
function watchCpu(child: SandboxChild, cpuMs: number, clock: Clock, exceeded: () => void): Disposable {
  const before = child.cpuMs() ?? 0
  let timer = clock.after(pollMs, look)
  return { [Symbol.dispose]: () => timer[Symbol.dispose]() }

  function look(): void {
    const used = (child.cpuMs() ?? before) - before
    if (used > withGrace(cpuMs)) exceeded()
    else timer = clock.after(pollMs, look)
  }
}
