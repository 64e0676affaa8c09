import { CannotExpress, step } from '../cannot-express.ts'
import { merge } from '../merge.ts'
import { isSchemaObject, type Schema, type SchemaObject, schemasIn } from '../schema.ts'
import type { Context, Level } from './context.ts'
import { excludes } from './exclusive.ts'
import { any, type Expression } from './expression.ts'

/** Branches, times the branches inside them, are tried one by one. */
const maxBranches = 256

/** One of several schemas, each together with what stands beside them. */
export function choices(
  context: Context,
  keyword: 'anyOf' | 'oneOf',
  schema: SchemaObject,
  at: string,
  level: Level,
): Expression | undefined {
  const { [keyword]: given, ...beside } = schema
  const branches = schemasIn(given)
  if (branches.length > maxBranches) throw new CannotExpress(at, keyword, 'has too many branches')
  const isAlone = Object.keys(beside).every((name) => remarks.has(name))
  const whole = branches.map((branch, index) => joined(context, beside, branch, step(at, keyword, index)))
  if (keyword === 'oneOf') refuseOverlaps(context, whole, at)
  return any(
    ...branches.map((branch, index) =>
      context.convert(isAlone ? branch : (whole[index] as Schema), step(at, keyword, index), level),
    ),
  )
}

const remarks = new Set(['title', 'description', 'default', 'examples', '$defs', 'definitions', '$schema', '$id'])

function joined(context: Context, beside: SchemaObject, branch: Schema, at: string): Schema {
  return merge(beside, isSchemaObject(branch) ? context.flatten(branch, at) : branch, at)
}

/** What fits two branches fits none, by the meaning of `oneOf`: none of what we write may fit another branch. */
function refuseOverlaps(context: Context, branches: readonly Schema[], at: string): void {
  for (const [index, one] of branches.entries()) {
    for (const [place, other] of branches.entries()) {
      if (index === place || excludes(context, one, other)) continue
      throw new CannotExpress(at, 'oneOf', `has branches that may overlap (${index} and ${place})`)
    }
  }
}
