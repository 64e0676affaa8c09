import type { VNode } from 'preact'
import type { Problem } from './check.ts'
import type { Path } from './path.ts'
import type { Schema } from './schema.ts'

/** One place of a form. */
export interface FieldProps {
  /** What people call it: a property's name, an item's number. */
  readonly label: string
  readonly schema: unknown
  readonly root: Schema
  readonly required: boolean
  readonly value: unknown
  readonly path: Path
  /** Of the whole form; each place shows its own. */
  readonly problems: readonly Problem[]
  readonly depth: number
  onChange(value: unknown): void
  /** How to get rid of it, for items and further properties. */
  remove?(): void
}

/** What fields with fields within them draw those with. */
export type Nest = (props: FieldProps) => VNode

/** The attributes of whatever is typed into. */
export interface ControlProps {
  readonly id: string
  readonly value: unknown
  readonly schema: Schema
  readonly required: boolean
  readonly invalid: boolean
  readonly describedBy: string | undefined
  onChange(value: unknown): void
}
