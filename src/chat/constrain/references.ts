import { resolveReference } from '../../json/json-pointer.ts'
import { isRecord } from '../../lib/is-record.ts'
import { memoizeByObject } from '../../lib/memoize.ts'
import { CannotExpress, pointerStep, stepsPerSchema, type WorkBudget } from './conversion.ts'
import {
  type AnySchema,
  annotationKeywords,
  commonTypes,
  declaredTypes,
  forKeywords,
  isSchema,
  type JsonSchemaObject,
  listedValues,
  schemaEntries,
  schemasIn,
  strings,
} from './schema.ts'

/** Resolves a `$ref` within the same schema. Nothing is ever fetched. */
export function resolve(root: AnySchema, reference: string, at: string): AnySchema {
  const found = lookUp(root, reference)
  if (!isSchema(found))
    throw new CannotExpress(at, '$ref', `does not exist in the schema (${JSON.stringify(reference.slice(0, 80))})`)
  return found
}

const lookUp = (root: AnySchema, reference: string): unknown =>
  /^#[^/]/.test(reference) && typeof root === 'object'
    ? anchorsOf(root).get(reference.slice(1))
    : resolveReference(root, reference)

const anchorsOf = memoizeByObject(
  (root: object): ReadonlyMap<string, AnySchema> =>
    // If several have the same name, the first one counts.
    new Map(
      [...objectsIn(root)].toReversed().flatMap((one) => (typeof one.$anchor === 'string' ? [[one.$anchor, one]] : [])),
    ),
)

/** All objects in a schema, including those in its definitions, but not in the values that it lists. */
function* objectsIn(root: unknown): Generator<JsonSchemaObject> {
  const open = [root]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== 'object' || next === null) continue
    if (isRecord(next)) yield next
    for (const [name, inner] of Object.entries(next).reverse())
      if (name !== 'const' && name !== 'enum') open.push(inner)
  }
}

/** References that lead back to themselves, directly or indirectly. */
export function findCycles(root: AnySchema, budget: WorkBudget): ReadonlySet<string> {
  const leadsTo = new Map<string, ReadonlySet<string>>()
  const follow = (reference: string): void => {
    if (leadsTo.has(reference)) return
    leadsTo.set(reference, new Set())
    const next = findReferences(lookUp(root, reference), budget)
    leadsTo.set(reference, next)
    for (const one of next) follow(one)
  }
  for (const reference of findReferences(root, budget)) follow(reference)
  return new Set([...leadsTo.keys()].filter((reference) => isReachable(reference, leadsTo, budget)))
}

function isReachable(goal: string, leadsTo: ReadonlyMap<string, ReadonlySet<string>>, budget: WorkBudget): boolean {
  const seen = new Set([goal])
  // This loop also visits members that are added to the set during the iteration.
  for (const next of seen) {
    for (const further of leadsTo.get(next) ?? []) {
      budget.spend(1)
      if (further === goal) return true
      seen.add(further)
    }
  }
  return false
}

/** All references in a schema; its definitions may point back to the containing schema. */
function findReferences(place: unknown, budget: WorkBudget): ReadonlySet<string> {
  const found = new Set<string>()
  for (const { $ref } of objectsIn(place)) {
    budget.spend(1)
    if (typeof $ref === 'string') found.add($ref)
  }
  return found
}

/** Resolves `$ref` and `allOf` at the top level of a schema. */
export type Flatten = (schema: JsonSchemaObject, at: string) => AnySchema

/** Maximum length of a chain of references; longer ones are treated as cycles. */
const maxReferenceHops = 32

/** Creates `Flatten` for a root schema, with a budget because a small schema can be merged with itself many times. */
export function createFlatten(root: AnySchema, budget: WorkBudget): Flatten {
  return (schema, at) => flatten(schema, at, 0)

  function flatten(schema: JsonSchemaObject, at: string, hops: number): AnySchema {
    if (hops > maxReferenceHops) throw new CannotExpress(at, '$ref', 'is circular')
    const { $ref, allOf, ...own } = schema
    let flat: AnySchema = own
    if (typeof $ref === 'string') flat = joined(flat, resolve(root, $ref, at), at, hops)
    for (const [index, part] of schemasIn(allOf).entries())
      flat = joined(flat, part, pointerStep(at, 'allOf', index), hops)
    return flat
  }

  function joined(flat: AnySchema, part: AnySchema, at: string, hops: number): AnySchema {
    budget.spend(stepsPerSchema, at)
    const whole = mergeSchemas(flat, typeof part === 'boolean' ? part : flatten(part, at, hops + 1), at)
    budget.spend(JSON.stringify(whole).length, at)
    return whole
  }
}

type Combine = (one: unknown, other: unknown) => unknown

const larger: Combine = (one, other) => Math.max(Number(one), Number(other))
const smaller: Combine = (one, other) => Math.min(Number(one), Number(other))

/** Keywords that can be merged one by one, without looking at other keywords. */
const combinableKeywords: Readonly<Record<string, Combine>> = {
  ...forKeywords(larger, 'minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'),
  ...forKeywords(smaller, 'maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'),
  uniqueItems: (one, other) => one === true || other === true,
  required: (one, other) => [...new Set([...strings(one), ...strings(other)])],
  propertyNames: (one, other) => ({ allOf: [one, other] }),
  unevaluatedProperties: (one, other) => one !== false && other !== false,
  ...forKeywords((one) => one, '$defs', 'definitions', ...annotationKeywords),
}

/** Keywords for which two different values cannot be combined, such as two patterns. */
const uncombinable = new Set('pattern format multipleOf patternProperties contains not if then else'.split(' '))

export const isSameJson = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

/** The intersection of two flat schemas; `false` if nothing can match both. */
export function mergeSchemas(one: AnySchema, other: AnySchema, at: string): AnySchema {
  if (one === false || other === false) return false
  if (one === true) return other
  if (other === true) return one
  const merged: Record<string, unknown> = { ...one, ...other }
  for (const [keyword, combine] of Object.entries(combinableKeywords)) {
    if (Object.hasOwn(one, keyword) && Object.hasOwn(other, keyword))
      merged[keyword] = combine(one[keyword], other[keyword])
  }
  const [mine, theirs] = [declaredTypes(one), declaredTypes(other)]
  const types = mine && theirs ? commonTypes(mine, theirs) : (mine ?? theirs)
  if (types?.length === 0) return false
  if (types) merged.type = types
  if (!mergeValues(one, other, merged)) return false
  mergeProperties(one, other, merged, at)
  mergeItems(one, other, merged, at)
  mergeChoices(one, other, merged)
  const rival = Object.keys(one).find(
    (keyword) =>
      uncombinable.has(keyword) && Object.hasOwn(other, keyword) && !isSameJson(one[keyword], other[keyword]),
  )
  if (rival !== undefined) throw new CannotExpress(at, rival, 'appears twice with different values')
  return merged
}

/** Combines the values that `const` and `enum` list. Returns false if no value is left. */
function mergeValues(one: JsonSchemaObject, other: JsonSchemaObject, merged: Record<string, unknown>): boolean {
  const [mine, theirs] = [listedValues(one), listedValues(other)]
  if (!mine || !theirs) return true
  delete merged.const
  const texts = new Set(theirs.map((value) => JSON.stringify(value)))
  const common = mine.filter((value) => texts.has(JSON.stringify(value)))
  merged.enum = common
  return common.length > 0
}

/** Merges `properties`. A property in only one schema must also match the other's `additionalProperties`. */
function mergeProperties(one: JsonSchemaObject, other: JsonSchemaObject, merged: Record<string, unknown>, at: string) {
  const isPatterned = ({ patternProperties }: JsonSchemaObject) => patternProperties !== undefined
  if ((isPatterned(one) && additionalSchema(other) !== true) || (isPatterned(other) && additionalSchema(one) !== true))
    throw new CannotExpress(at, 'patternProperties', 'cannot be combined with additionalProperties')
  if (isSchema(one.additionalProperties) && isSchema(other.additionalProperties)) {
    merged.additionalProperties = either(one.additionalProperties, other.additionalProperties)
  }
  if (!isRecord(one.properties) && !isRecord(other.properties)) return
  const [mine, theirs] = [new Map(schemaEntries(one.properties)), new Map(schemaEntries(other.properties))]
  const names = [...new Set([...mine.keys(), ...theirs.keys()])]
  merged.properties = Object.fromEntries(
    names.map((name) => [
      name,
      either(mine.get(name) ?? additionalSchema(one), theirs.get(name) ?? additionalSchema(other)),
    ]),
  )
}

const additionalSchema = ({ additionalProperties }: JsonSchemaObject): AnySchema =>
  isSchema(additionalProperties) ? additionalProperties : true

function either(one: AnySchema, other: AnySchema): AnySchema {
  if (one === false || other === false) return false
  if (one === true || isSameJson(one, other)) return other
  return other === true ? one : { allOf: [one, other] }
}

function mergeItems(one: JsonSchemaObject, other: JsonSchemaObject, merged: Record<string, unknown>, at: string): void {
  const hasItems = ({ items, prefixItems }: JsonSchemaObject) => items !== undefined || prefixItems !== undefined
  if (!hasItems(one) || !hasItems(other)) return
  const isTuple = one.prefixItems !== undefined || other.prefixItems !== undefined
  if (isTuple || !isSchema(one.items) || !isSchema(other.items)) {
    throw new CannotExpress(at, 'allOf', 'defines the items of an array twice')
  }
  merged.items = either(one.items, other.items)
}

/** Combines two `anyOf` or two `oneOf` lists: a value must match a branch from each list. */
function mergeChoices(one: JsonSchemaObject, other: JsonSchemaObject, merged: Record<string, unknown>): void {
  for (const keyword of ['anyOf', 'oneOf'] as const) {
    if (one[keyword] === undefined || other[keyword] === undefined) continue
    const inner = { [keyword]: other[keyword] }
    merged[keyword] = schemasIn(one[keyword]).map((branch) => ({ allOf: [branch, inner] }))
  }
}
