/** Runs untrusted programs (S7, B9). `sandbox/executor.ts` implements it; `runtime/engines.ts` loads that on first use. */
export interface Executor extends AsyncDisposable {
  /** Tests which isolation tiers work on this machine. Returns the strongest one and the languages that it supports. */
  probe(): Promise<Isolation>
  /** Runs a program. Never rejects: a failure is reported in the outcome. */
  run(program: Program): Promise<ExecutionOutcome>
}

export type Tier = 'bwrap' | 'process' | 'worker'

export type Language = 'javascript' | 'typescript' | 'python'

export interface Isolation {
  /** Undefined if no tier at least as strong as `minIsolation` works. */
  readonly tier: Tier | undefined
  readonly languages: readonly Language[]
  /** One sentence for each unavailable language or tier: why, and what to do. */
  readonly missing: readonly string[]
}

export interface Program {
  readonly code: string
  readonly language: Language
  /** Identifies whose program this is. One owner's programs must leave room for those of other owners. */
  readonly owner: string
  /** Toolway's own code, run before `code` in the same scope, once per environment. Line numbers exclude it. */
  readonly prelude?: string
  /** The key of an environment that keeps variables between runs, unique to the principal, name and language. */
  readonly environment?: string
  /** Wall-clock time limit, including time spent waiting for the host. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /**
   * Serves the program's requests: `await host(name, input)` in JavaScript, `host(name, input)` in Python, with JSON
   * text in both directions. A thrown `HostRefusal` becomes an exception in the program, with the same code, message
   * and data.
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

export interface ProgramError {
  /** The class of the exception, such as TypeError, or our own name: TimeoutError, MemoryError, SyntaxError, … */
  readonly name: string
  readonly message: string
  /** The position in the program's code; lines count from 1. */
  readonly line?: number
  readonly column?: number
  readonly code?: string
}

export interface ExecutionOutcome {
  readonly status: 'ok' | 'error' | 'timeout' | 'out_of_memory' | 'cancelled' | 'refused'
  /** The returned value or the value of the last expression, as JSON text; absent if there is none. */
  readonly value?: string
  readonly logs: string
  /** One sentence for each part of the output that was truncated. */
  readonly truncated: readonly string[]
  readonly error?: ProgramError
  /** The isolation tier that was used; undefined if the program was refused. */
  readonly isolation: Tier | undefined
  /** Why the program's environment was reset, if it was. */
  readonly reset?: string
  readonly durationMs: number
}
