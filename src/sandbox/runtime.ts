import type { Language, Tier } from '../core/executor.ts'
import type { Child } from './child.ts'

/** A way to run programs that has been tried and works here. */
export interface Runtime {
  readonly tier: Tier
  start(): Child
}

/** What a search for a way has come to. */
export interface Search {
  readonly runtime?: Runtime
  /** What cannot be had, why, and what to do about it, in a sentence each. */
  readonly missing: readonly string[]
}

/** Languages that share an engine share its children and environments. */
export type Engine = 'javascript' | 'python'

export const engineOf = (language: Language): Engine => (language === 'python' ? 'python' : 'javascript')

export const tiers = ['bwrap', 'process', 'worker'] as const satisfies readonly Tier[]
