/** A pattern that is being read, and where. */
export interface Cursor {
  readonly signs: readonly string[]
  at: number
  refuse(why: string): never
}
