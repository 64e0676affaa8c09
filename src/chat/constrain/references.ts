import { resolveReference } from '../../json/json-pointer.ts'
import { isRecord } from '../../lib/is-record.ts'
import { memoizeByObject } from '../../lib/memoize.ts'
import { CannotExpress, type WorkBudget } from './conversion.ts'
import { type AnySchema, isSchema, type JsonSchemaObject } from './schema.ts'

/** Resolves a `$ref` within the same schema. Nothing is ever fetched. */
export function resolve(root: AnySchema, reference: string, at: string): AnySchema {
  const found = lookUp(root, reference)
  if (!isSchema(found))
    throw new CannotExpress(at, '$ref', `does not exist in the schema (${quoteReference(reference)})`)
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

const quoteReference = (reference: string): string => JSON.stringify(reference.slice(0, 80))

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
