import { isDeepStrictEqual } from 'node:util'
import type { Access } from '../core/access.ts'
import type { Caller } from '../core/call.ts'
import type { Policy } from '../policy/decide.ts'
import type { Tool } from '../tools/define.ts'
import type { GatewayStatus } from '../tools/meta/index.ts'
import type { ProcessState } from './process-state.ts'

/** What a world stands in: what outlives it, and the ways to the present one. */
export interface GenerationContext extends ProcessState {
  readonly access: Access
  servedUri(server: string, uri: string): string
  /** Takes the secrets of the configuration in force out of a text. */
  redact(text: string): string
  /** The policy that is in force now. */
  policy(): Policy
  /** Nothing where this caller may not see it. */
  status(caller: Caller): GatewayStatus | undefined
  /** Tools that the program has registered, served beside the native ones. */
  readonly tools: readonly Tool[]
  /** Prints to standard output, where that is ours. */
  readonly print: ((text: string) => void) | undefined
}

/** Something that a part of the configuration makes, and that goes on in the next world while that part stays the same. */
export interface Reusable<T> {
  readonly value: T
  /** The part that made it. */
  readonly builtFrom: unknown
}

/** What the world before has made of the same, or something new. */
export const reuseOrCreate = <T>(before: Reusable<T> | undefined, from: unknown, make: () => T): Reusable<T> =>
  before && isDeepStrictEqual(before.builtFrom, from) ? before : { value: make(), builtFrom: from }
