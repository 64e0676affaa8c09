import { isObject } from '../../core/schema-keywords.ts'
import { foldName } from '../../lib/lookalikes.ts'
import { composed, schemasAt } from '../schema-members.ts'

type Fields = Readonly<Record<string, unknown>>

/** Subschemas visited per call; schemas of servers may be circular. */
const maxSteps = 100_000

/**
 * Reports an undeclared argument whose name differs from a declared one only in case, width, white space or the like.
 * Some parsers ignore such differences (Go's `encoding/json`) and would use its unchecked value for the declared one.
 */
export function misspeltArgument(schema: Fields, args: Fields): string | undefined {
  if (isPlain(schema, args)) return undefined
  const cost = { steps: 0 }

  const look = (level: Level, value: unknown, path: string): string | undefined => {
    if (cost.steps > maxSteps) return 'they are too many to be checked; send fewer or simpler ones'
    if (Array.isArray(value)) {
      const inner = level.at(undefined)
      return firstOf(value.entries(), ([index, item]) => look(inner, item, `${path}[${index}]`))
    }
    if (!isObject(value)) return undefined
    return firstOf(Object.keys(value), (name) => {
      const at = path === '' ? name : `${path}.${name}`
      const declared = level.declared(name)
      if (declared !== undefined && declared !== name) {
        return `${JSON.stringify(at.slice(0, 100))} may be read as "${declared}"; spell it exactly so, or leave it out`
      }
      const inner = value[name]
      return declared === undefined || typeof inner !== 'object' ? undefined : look(level.at(name), inner, at)
    })
  }

  return look(createLevel([schema], schema, cost), args, '')
}

/** Fast path for most calls: only declared arguments, and no nested values. */
function isPlain({ properties }: Fields, args: Fields): boolean {
  for (const name in args) {
    const value = args[name]
    if (typeof value === 'object' && value !== null) return false
    if (!isObject(properties) || !Object.hasOwn(properties, name)) return false
  }
  return true
}

/** The members that the schemas at one position declare. */
interface Level {
  /** The declared name that this name equals or may be read as. */
  declared(name: string): string | undefined
  /** The level of a member, or of the items if no member is given. */
  at(member: string | undefined): Level
}

function createLevel(schemas: readonly unknown[], root: Fields, cost: { steps: number }): Level {
  const all = composed(schemas, root)
  const names = new Set(all.flatMap(({ properties }) => (isObject(properties) ? Object.keys(properties) : [])))
  const levels = new Map<string | undefined, Level>()
  let folded: ReadonlyMap<string, string> | undefined
  cost.steps += all.length + names.size
  return {
    declared(name) {
      if (names.has(name) || names.size === 0) return names.has(name) ? name : undefined
      folded ??= new Map([...names].map((declared) => [foldName(declared), declared]))
      return folded.get(foldName(name))
    },
    at(member) {
      let level = levels.get(member)
      if (level === undefined) {
        level = createLevel(schemasAt(schemas, member, root), root, cost)
        levels.set(member, level)
      }
      return level
    },
  }
}

function firstOf<Item>(items: Iterable<Item>, find: (item: Item) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}
