import { CannotExpress } from './cannot-express.ts'
import { isSchema, isSchemaObject, type Schema } from './schema.ts'

/** Finds what a `$ref` means. Only places inside the same schema can be meant: nothing is ever fetched. */
export function resolve(root: Schema, reference: string, at: string): Schema {
  const found = reference.startsWith('#') ? lookUp(root, reference.slice(1)) : undefined
  if (!isSchema(found)) throw new CannotExpress(at, '$ref', `leads nowhere inside the schema (${shown(reference)})`)
  return found
}

function lookUp(root: Schema, fragment: string): unknown {
  if (fragment === '') return root
  if (!fragment.startsWith('/')) return anchored(root, fragment, 0)
  let place: unknown = root
  for (const part of fragment.slice(1).split('/')) {
    const name = unescaped(part)
    if (typeof place !== 'object' || place === null || !Object.hasOwn(place, name)) return undefined
    place = (place as Record<string, unknown>)[name]
  }
  return place
}

function unescaped(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return part
  }
}

function anchored(place: unknown, name: string, depth: number): unknown {
  if (typeof place !== 'object' || place === null || depth > 64) return undefined
  if (isSchemaObject(place) && place.$anchor === name) return place
  for (const inner of Object.values(place)) {
    const found = anchored(inner, name, depth + 1)
    if (found !== undefined) return found
  }
  return undefined
}

const shown = (reference: string): string => JSON.stringify(reference.slice(0, 80))

/** The references that lead back to themselves, directly or through others. */
export function findCycles(root: Schema): ReadonlySet<string> {
  const leadsTo = new Map<string, ReadonlySet<string>>()
  const follow = (reference: string): void => {
    if (leadsTo.has(reference)) return
    leadsTo.set(reference, new Set())
    const target = reference.startsWith('#') ? lookUp(root, reference.slice(1)) : undefined
    const next = referencesIn(target)
    leadsTo.set(reference, next)
    for (const one of next) follow(one)
  }
  for (const reference of referencesIn(root)) follow(reference)
  return new Set([...leadsTo.keys()].filter((reference) => isReachable(reference, reference, leadsTo)))
}

function isReachable(from: string, goal: string, leadsTo: ReadonlyMap<string, ReadonlySet<string>>): boolean {
  const seen = new Set<string>()
  const open = [...(leadsTo.get(from) ?? [])]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next === goal) return true
    if (seen.has(next)) continue
    seen.add(next)
    open.push(...(leadsTo.get(next) ?? []))
  }
  return false
}

/** Definitions are no use of what they define, but a reference may lead to the schema around them: they count too. */
function referencesIn(place: unknown): ReadonlySet<string> {
  const found = new Set<string>()
  const open = [place]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== 'object' || next === null) continue
    if (isSchemaObject(next) && typeof next.$ref === 'string') found.add(next.$ref)
    for (const [name, inner] of Object.entries(next)) if (name !== 'const' && name !== 'enum') open.push(inner)
  }
  return found
}
