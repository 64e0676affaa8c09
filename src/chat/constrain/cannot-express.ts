/** A schema asks for something that a grammar, or a strict schema, cannot say. */
export class CannotExpress extends Error {
  override readonly name = 'CannotExpress'
  /** Where in the schema, as a JSON Pointer. */
  readonly at: string
  readonly keyword: string

  constructor(at: string, keyword: string, why: string) {
    super(`${at === '' ? 'The schema' : at} cannot be expressed: ${keyword} ${why}.`)
    this.at = at
    this.keyword = keyword
  }
}

/** Whether it was the schema that failed: one that nests, or whose members chain, beyond what the stack holds, as well. */
export const isInexpressible = (error: unknown): boolean =>
  error instanceof CannotExpress || error instanceof RangeError

/** One step further into a schema. */
export const step = (at: string, ...names: readonly (string | number)[]): string =>
  [at, ...names.map((name) => String(name).replaceAll('~', '~0').replaceAll('/', '~1'))].join('/')
