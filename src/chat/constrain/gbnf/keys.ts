import { step } from '../cannot-express.ts'
import { isSchemaObject, namedSchemas, type SchemaObject } from '../schema.ts'
import type { Context, Level } from './context.ts'
import { all, any, type Expression, nothing, set, text, times } from './expression.ts'
import { maxKeyCharacters } from './limits.ts'
import { listedValues } from './literals.ts'
import { patternString } from './pattern/index.ts'
import { complement, overlap, rawRanges } from './strings.ts'

/** The names that members may have beside those that the schema knows, as JSON strings. */
export function freeKeys(context: Context, schema: SchemaObject, at: string, level: Level): Expression | undefined {
  const { propertyNames } = schema
  if (hasRuleForNames(schema))
    return context.convert({ type: 'string', ...(propertyNames as SchemaObject) }, step(at, 'propertyNames'), level)
  return otherThan(
    context,
    namedSchemas(schema.properties).map(([name]) => name),
  )
}

/** Whether a schema demands something of names that a list of them does not say. */
export function hasRuleForNames({ propertyNames }: SchemaObject): boolean {
  return (
    propertyNames === false ||
    (isSchemaObject(propertyNames) && !isTrivial(propertyNames) && !listedValues(propertyNames))
  )
}

const isTrivial = (schema: SchemaObject): boolean =>
  Object.keys(schema).every((keyword) => keyword === 'type' || keyword === 'description' || keyword === 'title')

/** Names that fit a pattern. */
export function patternKeys(context: Context, pattern: string, at: string): Expression | undefined {
  const found = patternString(pattern, { min: 0, max: maxKeyCharacters }, at)
  return found && context.rules.define('key', found)
}

/** Whether a name is written as it is. */
const isRaw = (name: string): boolean => JSON.stringify(name) === `"${name}"`

interface Branch {
  readonly branches: Map<string, Branch>
  isName: boolean
}

/** Any name but these. What would have to be escaped is left out, so that no name can be written in two ways. */
function otherThan({ rules }: Context, names: readonly string[]): Expression {
  const root: Branch = { branches: new Map(), isName: true }
  for (const name of names.filter(isRaw)) {
    let branch = root
    for (const sign of name) {
      const next = branch.branches.get(sign) ?? { branches: new Map(), isName: false }
      branch.branches.set(sign, next)
      branch = next
    }
    branch.isName = true
  }
  const anySign = rules.define('key-char', set(rawRanges))
  const after = ({ branches, isName }: Branch): Expression => {
    const points = [...branches.keys()].map((sign) => sign.codePointAt(0) as number)
    const others = overlap(complement(points.map((point) => [point, point])), rawRanges)
    return any(
      isName ? undefined : nothing,
      ...[...branches].map(([sign, next]) => all(text(sign), after(next))),
      all(set(others), times(anySign, 0, maxKeyCharacters)),
    ) as Expression
  }
  return rules.define('key', all(text('"'), after(root), text('"')))
}
