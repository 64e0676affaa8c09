import type { VNode } from 'preact'
import type { Path } from './path.ts'
import type { Problem } from './problems.ts'
import type { Schema } from './schema.ts'

export interface FieldProps {
  /** The property's name, or the item's number. */
  readonly label: string
  readonly schema: unknown
  readonly root: Schema
  readonly required: boolean
  readonly value: unknown
  readonly path: Path
  /** All problems in the form. Each field shows its own. */
  readonly problems: readonly Problem[]
  readonly depth: number
  onChange(value: unknown): void
  /** Removes the field. Set only for items and additional properties. */
  remove?(): void
}

/** Renders a nested field. It is passed down to avoid an import cycle. */
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
