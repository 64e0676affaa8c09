import { Json } from '../../json/json.ts'
import { extentOf } from '../../json/json-text.ts'
import { parseExactly } from '../../json/parse-json.ts'
import { isRecord } from '../../lib/is-record.ts'

/** How a value for a portable schema becomes one for the original schema. Names are those of the portable schema. */
export interface Restoration {
  /** A text that is an object or array in JSON stands for that. */
  readonly parse?: true
  /** The original names of members. */
  readonly names?: ReadonlyMap<string, string>
  readonly members?: ReadonlyMap<string, Restoration>
  readonly items?: Restoration
  /** The original names of members that are null if they are left out. */
  readonly nulls?: readonly string[]
  /** The member with further members. */
  readonly spread?: string
  /** The member that the original schema does not have. */
  readonly placeholder?: string
}

/** Converts arguments for a portable schema. Those without anything to convert keep their bytes. */
export function restoreArguments(
  given: Json<Record<string, unknown>>,
  restoration: Restoration,
): Json<Record<string, unknown>> {
  const before = JSON.stringify(given.exact)
  const after = JSON.stringify(restoreValue(given.exact, restoration))
  return before === after ? given : (Json.parse(after) as Json<Record<string, unknown>>)
}

function restoreValue(value: unknown, how: Restoration): unknown {
  if (typeof value === 'string') return how.parse ? parseStructure(value) : value
  const { items } = how
  if (Array.isArray(value)) return items ? value.map((item) => restoreValue(item, items)) : value
  return isRecord(value) ? restoreMembers(value, how) : value
}

function restoreMembers(value: Readonly<Record<string, unknown>>, how: Restoration): unknown {
  const { names, members, nulls = [], spread, placeholder } = how
  const restored = new Map<string, unknown>()
  for (const [name, member] of Object.entries(value)) {
    const inner = members?.get(name)
    const further = name === spread && typeof member === 'string' ? parseStructure(member) : undefined
    if (name === placeholder) continue
    if (isRecord(further)) for (const [other, one] of Object.entries(further)) restored.set(other, one)
    else restored.set(names?.get(name) ?? name, inner ? restoreValue(member, inner) : member)
  }
  for (const name of nulls) if (!restored.has(name)) restored.set(name, null)
  return Object.fromEntries(restored)
}

/** Limits for an object or array that is given as text. */
const maxTextValues = 100_000
const maxTextDepth = 128

/** The object or array that a text is in JSON, or else the text. */
function parseStructure(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return text
  const separators = text.length - text.replaceAll(/[,:]/g, '').length
  if (separators > maxTextValues || extentOf(Buffer.from(text)).depth > maxTextDepth) return text
  try {
    return parseExactly(text)
  } catch {
    return text
  }
}
