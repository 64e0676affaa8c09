import type { VNode } from 'preact'
import type { Problem } from './check.ts'
import type { Path } from './path.ts'
import type { Schema } from './schema.ts'

export interface FieldProps {
  /** Name of a property, or number of an item. */
  readonly label: string
  readonly schema: unknown
  readonly root: Schema
  readonly required: boolean
  readonly value: unknown
  readonly path: Path
  /** All problems of the form; each field shows its own. */
  readonly problems: readonly Problem[]
  readonly depth: number
  onChange(value: unknown): void
  /** Only for items and additional properties. */
  remove?(): void
}

/** Renders nested fields; passed down to avoid an import cycle. */
export type RenderField = (props: FieldProps) => VNode

export interface ControlProps {
  readonly id: string
  readonly value: unknown
  readonly schema: Schema
  readonly required: boolean
  readonly invalid: boolean
  readonly describedBy: string | undefined
  onChange(value: unknown): void
}
