/** One argument and, in a word, what it tries; for honest ones, what it is good for. */
export type Case = readonly [why: string, value: string]
