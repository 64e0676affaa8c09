import type { ConfigProblem } from '../problems.ts'

/** What a translation has to say besides its result. */
export interface Report {
  /** What was understood, for `toolway validate`. */
  readonly notes: string[]
  /** What was left aside, and why. */
  readonly warnings: string[]
  readonly problems: ConfigProblem[]
}

export const createReport = (): Report => ({ notes: [], warnings: [], problems: [] })

/** `1 server`, `3 servers`. */
export const count = (number: number, thing: string): string => `${number} ${thing}${number === 1 ? '' : 's'}`
