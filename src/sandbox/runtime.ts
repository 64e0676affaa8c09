import { existsSync } from 'node:fs'
import type { ExecutionOutcome, Language, Tier } from '../core/executor.ts'
import { findProgram } from '../process/programs.ts'
import type { Frame } from './guest/protocol.ts'

/** A tested way to run programs. */
export interface Runtime {
  readonly tier: Tier
  start(): SandboxChild
}

export interface RuntimeSearch {
  readonly runtime?: Runtime
  /** One sentence for each missing part: what it is, why it is missing, and what to do. */
  readonly missing: readonly string[]
}

/** The engine that runs a program. Languages with the same engine share children and environments. */
export type Engine = 'javascript' | 'python'

export const engineOf = (language: Language): Engine => (language === 'python' ? 'python' : 'javascript')

export const tiers = ['bwrap', 'process', 'worker'] as const satisfies readonly Tier[]

/** A process or thread that runs programs. */
export interface SandboxChild {
  /** Resolves when the child accepts a program; rejects if it cannot start. */
  readonly ready: Promise<void>
  readonly ended: Promise<void>
  /** Sets the receiver for frames, which is also notified once when the child violates the protocol or exits. */
  listen(receiver: ChildListener): void
  /** Resolves once the message has been sent or can no longer be sent. */
  send(kind: number, id: number, payload?: string | Uint8Array): Promise<void>
  /** CPU time in milliseconds; undefined if unknown. */
  cpuMs(): number | undefined
  /** Suspends the child until `thaw`; false if that is not supported. */
  freeze(): boolean
  thaw(): void
  /** Kills the child; resolves once its processes or its thread have ended. */
  kill(): Promise<void>
}

/** A child that accepts a program. */
export interface ReadyChild {
  readonly child: SandboxChild
  readonly tier: Tier
}

export interface ChildListener {
  frame(frame: Frame): void
  /** The child violated the protocol. */
  broken(reason: string): void
  ended(): void
}

type Status = 'timeout' | 'cancelled' | 'refused'

const stopNames = { timeout: 'TimeoutError', cancelled: 'CancelledError', refused: 'SandboxError' } as const

export class RunStopped extends Error {
  override readonly name = 'RunStopped'
  readonly status: Status

  constructor(status: Status, message: string) {
    super(message)
    this.status = status
  }

  /** Converts an abort reason. Any reason other than a `RunStopped` means cancellation. */
  static from(reason: unknown): RunStopped {
    return reason instanceof RunStopped ? reason : new RunStopped('cancelled', 'The program was cancelled.')
  }

  get ending(): Pick<ExecutionOutcome, 'status' | 'error'> {
    return { status: this.status, error: { name: stopNames[this.status], message: this.message } }
  }
}

/** The error for a program that the sandbox cannot run. */
export const runRefused = (message: string) => new RunStopped('refused', message)

/** The languages that can probably run here, judged without a test run: Python requires `bwrap`. */
export function likelyLanguages(languages: readonly Language[], path = process.env.PATH ?? ''): readonly Language[] {
  const bwrap = findProgram('bwrap', { env: { PATH: path }, isWanted: existsSync })
  return bwrap ? languages : languages.filter((language) => language !== 'python')
}

const KiB = 1024
const MiB = 1024 * KiB

/** Fixed limits for programs. Only a program's time and memory limits are configurable. */
export const sandboxLimits = {
  sourceBytes: 256 * KiB,
  /** CPU time; waiting for the host does not count. */
  cpuMs: 5000,
  logBytes: 64 * KiB,
  /** How much output is dropped before the program is stopped. A short line counts as 2 KiB. */
  droppedLogBytes: 32 * MiB,
  valueBytes: 256 * KiB,
  /** Maximum number of host calls per run, and how many of them may run in parallel. */
  calls: 200,
  callsAtOnce: 8,
  callBytes: 1 * MiB,
  answerBytes: 8 * MiB,
  /** Maximum number of messages from one child per run; only an attacker would send more. */
  messages: 20_000,
  messageBytes: 64 * MiB,
  /** How many programs may run, and how many may wait. */
  runs: 4,
  waiting: 64,
  /** Longest wait for a slot and a child. */
  waitMs: 30_000,
  /** Maximum total memory for all environments, and their maximum number. */
  rememberedBytes: 128 * MiB,
  environments: 64,
  /** Maximum number of interpreters that are kept; each is a process. */
  interpreters: 4,
  /** Idle time after which environments and warm children are dropped. */
  idleMs: 10 * 60_000,
  /** Maximum number of JavaScript processes that are kept for their environments, and how long each may be idle. */
  engines: 4,
  engineIdleMs: 60_000,
  /** Maximum number of children that wait for programs, and how long recent demand determines their number. */
  spares: 16,
  demandMs: 60_000,
  /** Time limit for a child to start. */
  startMs: 10_000,
  /** Interval for trying unavailable tiers again. */
  againMs: 60_000,
} as const

export type Limits = { readonly [Name in keyof typeof sandboxLimits]: number }

/** Limits passed to the child, so that programs get a clear error before the host enforces them. */
export const taskLimits = ({ cpuMs, logBytes, droppedLogBytes, valueBytes, calls, callBytes }: Limits) => ({
  cpuMs,
  logBytes,
  droppedLogBytes,
  valueBytes,
  calls,
  callBytes,
})
