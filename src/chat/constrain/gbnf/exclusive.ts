import { isSchemaObject, namedSchemas, numberIn, type Schema, type SchemaObject, strings } from '../schema.ts'
import { allTypes, commonTypes, isOfType, namedTypes, typesOf } from '../types.ts'
import type { Context } from './context.ts'
import { listedValues } from './literals.ts'

/** Whether nothing that is written for one flat schema can fit another: true only where that is sure. */
export function excludes(context: Context, written: Schema, other: Schema, depth = 0): boolean {
  if (written === false || other === false) return true
  if (written === true || other === true || depth > 4) return false
  const values = listedValues(written)
  if (values) {
    context.purse.spend(values.length * (1 + (listedValues(other)?.length ?? 0)))
    return values.every((value) => isRefused(value, other))
  }
  const [mine, theirs] = [typesOf(written), namedTypes(other) ?? typesOfValues(other) ?? allTypes]
  if (!mine) return false
  const common = commonTypes(mine, theirs)
  if (common.length === 0) return true
  return common.every((type) => {
    if (type === 'object') return objectsExclude(context, written, other, depth)
    return (type === 'integer' || type === 'number') && numbersExclude(written, other)
  })
}

function isRefused(value: unknown, schema: SchemaObject): boolean {
  const listed = listedValues(schema)
  if (listed && !listed.some((one) => JSON.stringify(one) === JSON.stringify(value))) return true
  const types = namedTypes(schema)
  return types !== undefined && !isOfType(value, types)
}

function typesOfValues(schema: SchemaObject) {
  const listed = listedValues(schema)
  if (!listed || listed.length === 0) return undefined
  const kinds = listed.map((value) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value))
  return namedTypes({ type: kinds })
}

function numbersExclude(one: SchemaObject, other: SchemaObject): boolean {
  const below = (low: SchemaObject, high: SchemaObject): boolean => {
    const top = numberIn(low.maximum) ?? numberIn(low.exclusiveMaximum)
    const bottom = numberIn(high.minimum) ?? numberIn(high.exclusiveMinimum)
    return top !== undefined && bottom !== undefined && top < bottom
  }
  return below(one, other) || below(other, one)
}

/** Objects exclude one another by a member that one always has and the other never, or never with such a value. */
function objectsExclude(context: Context, written: SchemaObject, other: SchemaObject, depth: number): boolean {
  const [mine, theirs] = [new Map(namedSchemas(written.properties)), new Map(namedSchemas(other.properties))]
  const isClosed = !isOpen(written.additionalProperties) && written.patternProperties === undefined
  const always = new Set(strings(written.required))
  context.purse.spend(mine.size + theirs.size + always.size)
  const neverWritten = (name: string) => isClosed && !mine.has(name) && !always.has(name)
  if (written.properties !== undefined && strings(other.required).some(neverWritten)) return true
  return [...always].some((name) => {
    const value = theirs.get(name)
    if (value === undefined) return other.additionalProperties === false && other.patternProperties === undefined
    return excludes(context, flat(context, mine.get(name) ?? true), flat(context, value), depth + 1)
  })
}

const isOpen = (additional: unknown): boolean => additional === true || isSchemaObject(additional)

const flat = (context: Context, schema: Schema): Schema =>
  isSchemaObject(schema) ? context.flatten(schema, '') : schema
