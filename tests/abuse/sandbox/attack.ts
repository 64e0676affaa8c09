import type { ExecutionOutcome } from '../../../src/core/executor.ts'

/** A hostile program, and how it must end. */
export interface Attack {
  readonly title: string
  readonly code: string
  readonly language?: 'typescript'
  /** The ends that mean it was held; `ok` alone where nothing else is said. */
  readonly status?: readonly ExecutionOutcome['status'][]
  /** What it must give, where it gives something. */
  readonly value?: unknown
  /** What its error must say. */
  readonly error?: RegExp
  /** What it has printed, at most, in bytes. */
  readonly logs?: number
  /** For what waits instead of working. */
  readonly timeoutMs?: number
}

const of =
  (...status: ExecutionOutcome['status'][]) =>
  (title: string, code: string, more: Omit<Attack, 'title' | 'code'> = {}): Attack => ({ status, title, code, ...more })

/** It tries, and what it gets is this. */
export const gets = (title: string, value: unknown, code: string, more: Partial<Attack> = {}): Attack => ({
  title,
  code,
  value,
  ...more,
})
/** It fails, with an exception it could have caught. */
export const fails = of('error')
/** It would run for ever. */
export const spins = of('timeout')
/** It prints for ever, and is stopped for that or, on a slow machine, for its CPU time. */
export const prints = (title: string, code: string): Attack => of('error', 'timeout')(title, code, { logs: 65_536 })
/** It wants more memory than there is, or more of something that takes memory or time. */
export const bursts = of('out_of_memory', 'error', 'timeout')
/** It may end as it likes, as long as it ends. */
export const ends = of('ok', 'out_of_memory', 'error', 'timeout')
