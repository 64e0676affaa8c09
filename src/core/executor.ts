/** Runs untrusted programs (S7, B9). */
export interface Executor extends AsyncDisposable {
  /** The strongest isolation tier that works here, found by running it, and its languages. */
  probe(): Promise<Isolation>
  /** Never rejects: failures are outcomes. */
  run(program: Program): Promise<ExecutionOutcome>
}

export type Tier = 'bwrap' | 'process' | 'worker'

export type Language = 'javascript' | 'typescript' | 'python'

export interface Isolation {
  /** Undefined if nothing as strong as `minIsolation` works. */
  readonly tier: Tier | undefined
  readonly languages: readonly Language[]
  /** One sentence for each unavailable language or tier: why, and what to do. */
  readonly missing: readonly string[]
}

export interface Program {
  readonly code: string
  readonly language: Language
  /** Programs of one owner leave room for those of others. */
  readonly owner: string
  /** Our code, run before `code` in the same scope, once per environment; its lines do not count in errors. */
  readonly prelude?: string
  /** Key of an environment that keeps variables between sequential runs; unique to principal, name and language. */
  readonly environment?: string
  /** Wall time, including waits for the host. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /**
   * Serves requests of the program: `await host(name, input)` in JavaScript, `host(name, input)` in Python, with JSON
   * text on both sides. A thrown `HostRefusal` becomes an exception in the program with its code, message and data.
   */
  host(name: string, input: string, signal: AbortSignal): Promise<string>
}

export class HostRefusal extends Error {
  override readonly name = 'HostRefusal'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

export interface ExecutionOutcome {
  readonly status: 'ok' | 'error' | 'timeout' | 'out_of_memory' | 'cancelled' | 'refused'
  /** The value of the last expression or the returned value, as JSON text; absent for none. */
  readonly value?: string
  readonly logs: string
  /** One sentence for each cut. */
  readonly truncated: readonly string[]
  readonly error?: {
    /** The class of the exception, such as TypeError; or ours: TimeoutError, MemoryError, SyntaxError, … */
    readonly name: string
    readonly message: string
    /** In the program's code, counted from 1. */
    readonly line?: number
    readonly column?: number
    readonly code?: string
  }
  /** Undefined if the program was refused. */
  readonly isolation: Tier | undefined
  /** Why its environment was reset, if it was. */
  readonly reset?: string
  readonly durationMs: number
}
