/** One broken answer, in what way it is broken, and what it surely means. */
export interface Case {
  readonly way: string
  readonly broken: string
  readonly means: unknown
  /** What a caller who knows the wanted shape would say. */
  readonly accepts?: (value: unknown) => boolean
  /** Nothing is missing at the end; false where the text was cut off. */
  readonly complete?: boolean
}

export const casesOf = (way: string, ...pairs: readonly (readonly [string, unknown])[]): Case[] =>
  pairs.map(([broken, means]) => ({ way, broken, means }))

export const cutOff = (way: string, ...pairs: readonly (readonly [string, unknown])[]): Case[] =>
  casesOf(way, ...pairs).map((one) => ({ ...one, complete: false }))

/** The shape of a tool selection. */
export const isSelection = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'selected_tools' in value && Array.isArray(value.selected_tools)
