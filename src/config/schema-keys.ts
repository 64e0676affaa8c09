import type * as z from 'zod'
import type { Path } from './tree.ts'

interface Definition {
  readonly type: string
  readonly shape?: Readonly<Record<string, z.core.$ZodType>>
  readonly innerType?: z.core.$ZodType
  readonly in?: z.core.$ZodType
  readonly valueType?: z.core.$ZodType
  readonly element?: z.core.$ZodType
  readonly options?: readonly z.core.$ZodType[]
}

/** What stands behind defaults, optionals and transformations; a union stands for all its options. */
function unwrap(schema: z.core.$ZodType): Definition[] {
  const definition = schema._zod.def as unknown as Definition
  const inner = definition.innerType ?? definition.in
  if (inner) return unwrap(inner)
  return definition.options ? definition.options.flatMap(unwrap) : [definition]
}

/** The keys that a schema knows at a path; none where any key goes. */
export function keysAt(schema: z.core.$ZodType, path: Path): string[] {
  const definitions = unwrap(schema)
  const [part, ...rest] = path
  if (part === undefined) return [...new Set(definitions.flatMap(({ shape }) => Object.keys(shape ?? {})))]
  return definitions.flatMap(({ shape, valueType, element }) => {
    const next = shape ? shape[part] : (valueType ?? element)
    return next ? keysAt(next, rest) : []
  })
}
