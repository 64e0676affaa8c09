import type { Flatten } from '../flatten.ts'
import type { Purse } from '../purse.ts'
import type { Schema } from '../schema.ts'
import type { Expression } from './expression.ts'
import type { GrammarLimits } from './limits.ts'
import type { Rules } from './rules.ts'

/** How deep the conversion has got. */
export interface Level {
  readonly nesting: number
  /** How often references that lead back to themselves may still be followed. */
  readonly recursion: number
}

/** What every part of the conversion needs to know. */
export interface Context {
  readonly purse: Purse
  readonly flatten: Flatten
  readonly limits: GrammarLimits
  readonly rules: Rules
  readonly cycles: ReadonlySet<string>
  /** What a schema allows; `undefined` where it allows nothing. */
  convert(schema: Schema, at: string, level: Level): Expression | undefined
}
