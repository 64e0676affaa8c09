/** Runs programs that nobody trusts (S7, B9). */
export interface Executor extends AsyncDisposable {
  /** The strongest tier that works here, found out by really running it, and what can be run in it. */
  probe(): Promise<Isolation>
  /** Never rejects: whatever a program does is an outcome. */
  run(program: Program): Promise<ExecutionOutcome>
}

export type Tier = 'bwrap' | 'process' | 'worker'

export type Language = 'javascript' | 'typescript' | 'python'

export interface Isolation {
  /** None where nothing as strong as `minIsolation` works. */
  readonly tier: Tier | undefined
  readonly languages: readonly Language[]
  /** For each language or tier that cannot be had: why, and what to do about it, in a sentence. */
  readonly missing: readonly string[]
}

export interface Program {
  readonly code: string
  readonly language: Language
  /** Whose it is: programs of one owner leave room for those of others. */
  readonly owner: string
  /** Ours, run before the code in the same scope, once per environment; its lines do not count in errors. */
  readonly prelude?: string
  /**
   * The environment that keeps its variables from one run to the next: the key is unique to a principal and a name
   * (and a language). Runs in one environment are made one after the other. Without it everything is forgotten.
   */
  readonly environment?: string
  /** Wall time, waiting for the host included. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /**
   * What a program may ask of its host: in JavaScript `await host(name, input)`, in Python `host(name, input)`, where
   * both sides are JSON text. What it throws as a `HostRefusal` becomes an exception in the program with its code,
   * message and data.
   */
  host(name: string, input: string, signal: AbortSignal): Promise<string>
}

/** What a program can catch. */
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
  /** The value of the last expression, or what the code returned, as JSON text; absent where it is nothing. */
  readonly value?: string
  /** What it printed. */
  readonly logs: string
  /** What had to be cut, in a sentence each. */
  readonly truncated: readonly string[]
  readonly error?: {
    /** The class of the exception, such as TypeError; or ours: TimeoutError, MemoryError, SyntaxError, … */
    readonly name: string
    readonly message: string
    /** Of the code, counted from 1. */
    readonly line?: number
    readonly column?: number
    /** The code of a host's refusal that nobody caught. */
    readonly code?: string
  }
  /** How it was held; none where it was refused. */
  readonly isolation: Tier | undefined
  /** Why its environment had to begin anew, if it had to. */
  readonly reset?: string
  readonly durationMs: number
}
