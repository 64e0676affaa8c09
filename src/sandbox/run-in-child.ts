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

interface ChildRunOptions {
  readonly child: SandboxChild
  readonly task: ProgramTask
  readonly memory?: Buffer
  readonly host: Program['host']
  readonly signal: AbortSignal
  readonly limits: Limits
  readonly clock: Clock
  readonly log: Log
}

/** One program in an untrusted child. Counts and validates the child's messages; any violation kills the child. */
export class ChildRun {
  readonly #options: ChildRunOptions
  readonly #ending = Promise.withResolvers<ChildResult>()
  readonly #memory = Promise.withResolvers<Buffer | undefined>()
  readonly #calls = new AbortController()
  readonly #takeCall: ReturnType<typeof createHostCalls>
  readonly #watchdog: Disposable
  readonly #logs: Buffer[] = []
  #logBytes = 0
  #value: string | undefined
  #messages = 0
  #bytes = 0
  #over = false
  #remembered = false

  constructor(options: ChildRunOptions) {
    const { child, task, memory, host, signal, limits, clock, log } = options
    this.#options = options
    this.#takeCall = createHostCalls({ child, host, limits, signal: this.#calls.signal, log })
    const outOfTime = `The program exceeded its limit of ${task.cpuMs / 1000} s of CPU time.`
    this.#watchdog = watchCpu(child, task.cpuMs, clock, () => this.#stop(new RunStopped('timeout', outOfTime)))
    child.listen({
      frame: (frame) => this.#receive(frame),
      broken: (what) => this.#misbehaved(what),
      ended: () => {
        this.#memory.resolve(undefined)
        this.#failed('The sandbox process exited before the program finished.')
      },
    })
    signal.addEventListener('abort', this.#aborted, { once: true })
    if (signal.aborted) this.#aborted()
    else {
      if (memory) void child.send(messageKinds.memory, 0, memory)
      void child.send(messageKinds.run, 0, JSON.stringify(task))
    }
  }

  get ending(): Promise<ChildResult> {
    return this.#ending.promise
  }

  /** The environment's new state; undefined if none arrives. */
  get memory(): Promise<Buffer | undefined> {
    return this.#memory.promise
  }

  #receive({ kind, id, payload }: Frame): void {
    const { task, limits } = this.#options
    this.#messages++
    this.#bytes += kind === messageKinds.memory ? 0 : payload.length
    if (this.#messages > limits.messages || this.#bytes > limits.messageBytes) this.#misbehaved('too many messages')
    else if (kind === messageKinds.memory) {
      // A child may send its state once, after the result, and only if it was requested.
      const isRequested = task.keep && this.#over && !this.#remembered
      this.#remembered = true
      if (isRequested) this.#memory.resolve(payload)
      else this.#misbehaved('an unrequested environment state')
    } else if (!this.#over) this.#take(kind, id, payload)
  }

  #take(kind: number, id: number, payload: Buffer): void {
    if (kind === messageKinds.log) {
      this.#logBytes += payload.length
      if (this.#logBytes > this.#options.limits.logBytes) this.#misbehaved('too much output')
      else this.#logs.push(payload)
    } else if (kind === messageKinds.value) {
      const isSecond = this.#value !== undefined
      this.#value = payload.toString()
      if (isSecond) this.#misbehaved('a second result')
      else if (parseJson(this.#value) === undefined) this.#misbehaved('a value that is not JSON')
    } else if (kind === messageKinds.call) {
      if (!this.#takeCall(id, payload)) this.#misbehaved('an invalid host call')
    } else if (kind === messageKinds.done) {
      const { data: result } = resultSchema.safeParse(parseJson(payload.toString()))
      if (!result) this.#misbehaved('an invalid result')
      else this.#end({ ...result, broken: result.broken ? (result.error?.message ?? 'The engine failed.') : undefined })
    } else this.#misbehaved(`a message of kind ${kind}`)
  }

  #end(found: Pick<ChildResult, 'status' | 'error' | 'broken'> & Partial<Pick<ChildResult, 'truncated'>>): void {
    if (this.#over) return
    this.#over = true
    this.#watchdog[Symbol.dispose]()
    this.#options.signal.removeEventListener('abort', this.#aborted)
    this.#calls.abort()
    const value = found.status === 'ok' ? this.#value : undefined
    this.#ending.resolve({ truncated: [], ...found, value, logs: Buffer.concat(this.#logs).toString() })
    if (found.broken !== undefined) this.#discard()
  }

  readonly #aborted = (): void => this.#stop(RunStopped.from(this.#options.signal.reason))

  #stop({ ending, message }: RunStopped): void {
    this.#end({ ...ending, broken: message })
  }

  #failed(message: string): void {
    this.#end({ status: 'error', error: { name: 'SandboxError', message }, broken: message })
  }

  #misbehaved(what: string): void {
    this.#options.log.warn({ what }, 'a program tampered with its sandbox')
    this.#failed('The program tampered with its sandbox and was stopped.')
    // Kill the child even if it has already reported its result.
    this.#discard()
  }

  #discard(): void {
    this.#memory.resolve(undefined)
    void this.#options.child.kill()
  }
}

const positionSchema = z.number().int().min(1).max(10_000_000)

/** Matches `ProgramResult`. */
const resultSchema = z.strictObject({
  status: z.enum(['ok', 'error', 'timeout', 'out_of_memory']),
  error: z
    .strictObject({
      name: z.string().max(256),
      message: z.string().max(8192),
      line: positionSchema.optional(),
      column: positionSchema.optional(),
      code: z.string().max(256).optional(),
    })
    .optional(),
  truncated: z.array(z.string().max(512)).max(4),
  broken: z.boolean().optional(),
})

const cpuPollMs = 50
/** The host's CPU limit, which exceeds the child's: the child measures more precisely and reports better errors. */
const withGrace = (cpuMs: number) => cpuMs * 1.1 + 100

/** Detects that the CPU time is exceeded when the child cannot: during work that the engine cannot interrupt. */
function watchCpu(child: SandboxChild, cpuMs: number, clock: Clock, exceeded: () => void): Disposable {
  const before = child.cpuMs() ?? 0
  let timer = clock.after(cpuPollMs, look)
  return { [Symbol.dispose]: () => timer[Symbol.dispose]() }

  function look(): void {
    const used = (child.cpuMs() ?? before) - before
    if (used > withGrace(cpuMs)) exceeded()
    else timer = clock.after(cpuPollMs, look)
  }
}
