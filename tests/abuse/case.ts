/** One argument and, in a word, what it tries; for honest ones, what it is good for. */
export type Case = readonly [why: string, value: string]

/** A value as the title of a test can show it. */
export const shown = (value: string) => JSON.stringify(value.length > 100 ? `${value.slice(0, 100)}…` : value)
