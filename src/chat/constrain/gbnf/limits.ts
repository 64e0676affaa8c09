/** What a grammar allows where a schema sets no bound: a model that runs away comes to an end. */
export interface GrammarLimits {
  /** Characters of a string. */
  readonly string: number
  /** Items of a list. */
  readonly items: number
  /** Members of an object beside those that its schema names. */
  readonly members: number
  /** How deep a value nests of which the schema says nothing. */
  readonly freeDepth: number
  /** How often a schema that refers to itself may do so, one inside the other. */
  readonly recursion: number
}

export const defaultLimits: GrammarLimits = { string: 4096, items: 64, members: 16, freeDepth: 3, recursion: 4 }

/** Bounds that a schema sets itself are kept up to here; a narrower grammar is a right one still. */
export const maxCharacters = 65_536
export const maxUnrolledItems = 1024

/** Characters of a name that the schema does not know. */
export const maxKeyCharacters = 48
