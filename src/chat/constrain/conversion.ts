import { createHash } from 'node:crypto'
import { escapeStep } from '../../json/json-pointer.ts'
import { memoizeByObject, setBounded } from '../../lib/memoize.ts'

/** Thrown if a schema cannot be expressed as a grammar or a strict schema. */
export class CannotExpress extends Error {
  override readonly name = 'CannotExpress'
  /** JSON Pointer to the part of the schema that cannot be expressed. */
  readonly at: string
  readonly keyword: string

  constructor(at: string, keyword: string, why: string) {
    super(`${at === '' ? 'The schema' : at} cannot be expressed: ${keyword} ${why}.`)
    this.at = at
    this.keyword = keyword
  }
}

/** Whether the schema caused the error. A RangeError is a stack overflow from deep nesting. */
export const isInexpressible = (error: unknown): boolean =>
  error instanceof CannotExpress || error instanceof RangeError

/** Appends names to a JSON Pointer. */
export const pointerStep = (at: string, ...names: readonly (string | number)[]): string =>
  [at, ...names.map((name) => escapeStep(String(name)))].join('/')

/** Maximum number of steps in one conversion. That many steps take a few tenths of a second. */
const maxConversionSteps = 2_000_000

/** The base cost of one subschema. */
export const stepsPerSchema = 100

export type WorkBudget = ReturnType<typeof createWorkBudget>

/** Limits the work for one conversion. Schemas are untrusted, and conversion blocks the event loop. */
export function createWorkBudget(steps = maxConversionSteps) {
  let left = steps
  return {
    /** Throws `CannotExpress` when the budget is used up. */
    spend(steps: number, at = ''): void {
      left -= steps
      if (left < 0) throw new CannotExpress(at, 'the schema', 'is too large')
    },
  }
}

/**
 * Caches results and failures; evicts the least recently used entry. The key is a hash of the JSON text. Schemas that
 * differ only in member order get different keys, because models write members in schema order.
 */
export function memoizeByContent<Input extends object | boolean, Output>(
  make: (input: Input) => Output,
  max = 512,
): (input: Input) => Output {
  const known = new Map<string, { readonly output: Output } | { readonly failure: unknown }>()
  const attempt = (input: Input) => {
    try {
      return { output: make(input) }
    } catch (failure) {
      return { failure }
    }
  }
  return (input) => {
    const key = typeof input === 'object' ? cachedHash(input) : contentHash(input)
    const outcome = known.get(key) ?? attempt(input)
    setBounded(known, key, outcome, max)
    if ('failure' in outcome) throw outcome.failure
    return outcome.output
  }
}

export const contentHash = (content: unknown): string =>
  createHash('sha256').update(JSON.stringify(content)).digest('base64url').slice(0, 32)

const cachedHash = memoizeByObject(contentHash)
