import type { Allowance } from './allowance.ts'
import type { Type } from './type.ts'

/** Where in a schema the writer is. */
export interface Place {
  /** The whole document, which references are about. */
  readonly root: unknown
  readonly allowance: Allowance
  readonly depth: number
  /** The references that led here: one that comes again leads round in a circle. */
  readonly through: readonly string[]
}

/** Hands the schemas inside a schema back to whoever writes schemas. */
export type WriteSchema = (schema: unknown, place: Place) => Type
