import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Language, Outcome, Tier } from '../core/executor.ts'
import type { Frame } from './guest/protocol.ts'

/** A way to run programs that has been tried and works here. */
export interface Runtime {
  readonly tier: Tier
  start(): SandboxChild
}

/** What a search for a way has come to. */
export interface RuntimeSearch {
  readonly runtime?: Runtime
  /** What cannot be had, why, and what to do about it, in a sentence each. */
  readonly missing: readonly string[]
}

/** Languages that share an engine share its children and environments. */
export type Engine = 'javascript' | 'python'

export const engineOf = (language: Language): Engine => (language === 'python' ? 'python' : 'javascript')

export const tiers = ['bwrap', 'process', 'worker'] as const satisfies readonly Tier[]

/** A process or thread that runs programs, as its host sees it: a line to it, and means to end it. */
export interface SandboxChild {
  /** Settles when it can be given a program; rejects with the reason if it never can. */
  readonly ready: Promise<void>
  /** Settles when it is gone. */
  readonly ended: Promise<void>
  /** Whoever listens hears frames from now on, and once if the child breaks the rules or is gone. */
  listen(receiver: ChildListener): void
  /** Settles when the message has left this process, or never will. */
  send(kind: number, id: number, payload?: string | Uint8Array): Promise<void>
  /** Milliseconds it has spent on a processor; undefined where nobody can tell. */
  cpuMs(): number | undefined
  /** Stops it from running until `thaw`; false where that cannot be had. */
  freeze(): boolean
  thaw(): void
  /** Ends it, whatever it does; settles when nothing of it is left. */
  kill(): Promise<void>
}

export interface ChildListener {
  frame(frame: Frame): void
  /** It said what no honest child says. */
  broken(reason: string): void
  ended(): void
}

type Status = 'timeout' | 'cancelled' | 'refused'

const names = { timeout: 'TimeoutError', cancelled: 'CancelledError', refused: 'SandboxError' } as const

/** Why a program did not come to an end of its own. */
export class RunStopped extends Error {
  override readonly name = 'RunStopped'
  readonly status: Status

  constructor(status: Status, message: string) {
    super(message)
    this.status = status
  }

  /** A signal's reason as one of ours: whatever others abort with, to the program it is a cancellation. */
  static from(reason: unknown): RunStopped {
    return reason instanceof RunStopped ? reason : new RunStopped('cancelled', 'The program was cancelled.')
  }

  get ending(): Pick<Outcome, 'status' | 'error'> {
    return { status: this.status, error: { name: names[this.status], message: this.message } }
  }
}

/** Something of the sandbox's own that keeps a program from running. */
export const runRefused = (message: string) => new RunStopped('refused', message)

/** The languages that can most likely be run here, without trying it: Python only where there is a `bwrap`. */
export function likelyLanguages(languages: readonly Language[], path = process.env.PATH ?? ''): readonly Language[] {
  const wrapped = path.split(delimiter).some((folder) => folder !== '' && existsSync(join(folder, 'bwrap')))
  return wrapped ? languages : languages.filter((language) => language !== 'python')
}
