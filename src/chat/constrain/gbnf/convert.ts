import { CannotExpress } from '../cannot-express.ts'
import { flattenIn } from '../flatten.ts'
import { createPurse, type Purse, stepsPerSchema } from '../purse.ts'
import { findCycles, resolve } from '../references.ts'
import { isSchemaObject, type Schema, type SchemaObject } from '../schema.ts'
import { type Type, typesOf, unknownType } from '../types.ts'
import { arrays } from './arrays.ts'
import { choices } from './choices.ts'
import type { Context, Level } from './context.ts'
import { any, type Expression, text } from './expression.ts'
import { freeValue } from './free.ts'
import { defaultLimits, type GrammarLimits } from './limits.ts'
import { listedValues, literals } from './literals.ts'
import { integers, numbers } from './numbers.ts'
import { objects } from './objects.ts'
import { createRules } from './rules.ts'
import { texts } from './texts.ts'

/** Demands that a grammar cannot make. Other unknown words are remarks, as the standard has it. */
const refused = [
  'not',
  'if',
  'dependentRequired',
  'dependentSchemas',
  'dependencies',
  'contains',
  '$dynamicRef',
  '$recursiveRef',
] as const

const deepest = 64

/**
 * A GBNF grammar whose every text is JSON that fits the schema. It may be narrower than the schema: strings, lists and
 * recursion are bounded, members come in the order of the schema and no unknown ones unless they are asked for. Throws
 * `CannotExpress` where a demand cannot be made in a grammar; none is ever left out.
 */
export function toGrammar(schema: Schema, limits: GrammarLimits = defaultLimits, purse: Purse = createPurse()): string {
  const rules = createRules()
  const references = new Map<string, Expression | undefined>()
  const flatten = flattenIn(schema, purse)
  const context: Context = { purse, flatten, limits, rules, cycles: findCycles(schema, purse), convert }
  const root = convert(schema, '', { nesting: 0, recursion: limits.recursion })
  if (!root) throw new CannotExpress('', 'the schema', 'allows nothing, or nothing that ends')
  return rules.grammar(root)

  function convert(given: Schema, at: string, level: Level): Expression | undefined {
    if (level.nesting > deepest) throw new CannotExpress(at, 'the schema', 'nests too deeply')
    purse.spend(stepsPerSchema, at)
    if (given === false) return undefined
    const inner = { ...level, nesting: level.nesting + 1 }
    if (given === true) return freeValue(context)
    if (typeof given.$ref === 'string' && isOnlyReference(given)) return referred(given.$ref, at, inner)
    const flat = flatten(given, at)
    return isSchemaObject(flat) ? allowed(context, flat, at, inner) : convert(flat, at, inner)
  }

  function referred(reference: string, at: string, level: Level): Expression | undefined {
    const target = resolve(schema, reference, at)
    const isCycle = context.cycles.has(reference)
    if (isCycle && level.recursion === 0) return undefined
    const key = `${level.recursion} ${reference}`
    if (!references.has(key)) {
      const recursion = level.recursion - Number(isCycle)
      const found = convert(target, reference.slice(1), { nesting: isCycle ? 0 : level.nesting, recursion })
      references.set(key, found && rules.define(reference.split('/').at(-1) as string, found))
    }
    return references.get(key)
  }
}

const isOnlyReference = (schema: SchemaObject): boolean =>
  Object.keys(schema).every((name) =>
    ['$ref', 'title', 'description', 'default', 'examples', '$defs', 'definitions', '$schema'].includes(name),
  )

/** What a schema without references allows. */
function allowed(context: Context, schema: SchemaObject, at: string, level: Level): Expression | undefined {
  for (const keyword of refused) {
    if (schema[keyword] !== undefined) throw new CannotExpress(at, keyword, 'cannot be said in a grammar')
  }
  const unknown = unknownType(schema)
  if (unknown !== undefined) throw new CannotExpress(at, 'type', `names ${JSON.stringify(unknown)}, which is no type`)
  if (schema.anyOf !== undefined) return choices(context, 'anyOf', schema, at, level)
  if (schema.oneOf !== undefined) return choices(context, 'oneOf', schema, at, level)
  const values = listedValues(schema)
  if (values) return literals(values, schema, at)
  const types = typesOf(schema)
  return types ? any(...types.map((type) => ofType(context, type, schema, at, level))) : freeValue(context)
}

function ofType(context: Context, type: Type, schema: SchemaObject, at: string, level: Level): Expression | undefined {
  switch (type) {
    case 'object':
      return objects(context, schema, at, level)
    case 'array':
      return arrays(context, schema, at, level)
    case 'string':
      return texts(context, schema, at)
    case 'integer':
      return number(context, 'integer', integers(schema, at))
    case 'number':
      return number(context, 'number', numbers(schema, at))
    case 'boolean':
      return any(text('true'), text('false'))
    case 'null':
      return text('null')
  }
}

const number = (context: Context, hint: string, found: Expression | undefined): Expression | undefined =>
  found && context.rules.define(hint, found)
