import { resolveReference } from '../../json/json-pointer.ts'
import { memoizeByObject } from '../../lib/memoize.ts'
import { CannotExpress, type WorkBudget } from './conversion.ts'
import { type AnySchema, isSchema, isSchemaObject } from './schema.ts'

/** Resolves a `$ref` within the same schema. Nothing is ever fetched. */
export function resolve(root: AnySchema, reference: string, at: string): AnySchema {
  const found = lookUp(root, reference)
  if (!isSchema(found)) throw new CannotExpress(at, '$ref', `does not exist in the schema (${shown(reference)})`)
  return found
}

const lookUp = (root: AnySchema, reference: string): unknown =>
  /^#[^/]/.test(reference) ? anchorsOf(root).get(reference.slice(1)) : resolveReference(root, reference)

type Anchors = ReadonlyMap<string, AnySchema>

const anchorsOf = (root: AnySchema): Anchors => (typeof root === 'boolean' ? new Map() : anchorsOfSchema(root))

const anchorsOfSchema = memoizeByObject((root: object): Anchors => anchorsIn(root, new Map(), 0))

/** Collects the anchors in a schema. If several have the same name, the first one counts. */
function anchorsIn(place: unknown, found: Map<string, AnySchema>, depth: number): Anchors {
  if (typeof place !== 'object' || place === null || depth > 64) return found
  if (isSchemaObject(place) && typeof place.$anchor === 'string' && !found.has(place.$anchor))
    found.set(place.$anchor, place)
  for (const inner of Object.values(place)) anchorsIn(inner, found, depth + 1)
  return found
}

const shown = (reference: string): string => JSON.stringify(reference.slice(0, 80))

/** References that lead back to themselves, directly or indirectly. */
export function findCycles(root: AnySchema, budget: WorkBudget): ReadonlySet<string> {
  const leadsTo = new Map<string, ReadonlySet<string>>()
  const follow = (reference: string): void => {
    if (leadsTo.has(reference)) return
    leadsTo.set(reference, new Set())
    const next = referencesIn(lookUp(root, reference), budget)
    leadsTo.set(reference, next)
    for (const one of next) follow(one)
  }
  for (const reference of referencesIn(root, budget)) follow(reference)
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

/** All references in a schema, including those in its definitions, which may point back to the containing schema. */
function referencesIn(place: unknown, budget: WorkBudget): ReadonlySet<string> {
  const found = new Set<string>()
  const open = [place]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== 'object' || next === null) continue
    budget.spend(1)
    if (isSchemaObject(next) && typeof next.$ref === 'string') found.add(next.$ref)
    for (const [name, inner] of Object.entries(next)) if (name !== 'const' && name !== 'enum') open.push(inner)
  }
  return found
}
