import type { Place, WriteSchema } from './place.ts'
import { quoted } from './plain-text.ts'
import { remarks } from './remarks.ts'
import { isSchema, listOf, type Schema } from './schema.ts'
import { atom, intersection, type Type, union } from './type.ts'

const maxKey = 200
/** What fits on one line is easier to read there. */
const maxLine = 100

/** `{ path: string; head?: number }`, with what else may be in it behind an `&`. */
export function objectType(schema: Schema, place: Place, write: WriteSchema): Type {
  const properties = isSchema(schema.properties) ? schema.properties : {}
  const required = new Set(listOf(schema.required).slice(0, 1000))
  const members: string[] = []
  const keys = place.allowance.keys(properties)
  for (const key of keys) {
    if (place.allowance.spent) break
    if (key.length <= maxKey) members.push(member(key, properties[key], required.has(key)))
  }
  const untold = keys.length - members.length
  if (untold > 0) members.push(`/* and ${untold} more */ [key: string]: unknown`)
  const rest = others(schema, place, write)
  if (keys.length === 0) return rest ?? atom(schema.additionalProperties === false ? '{}' : 'Record<string, unknown>')
  return intersection([atom(body(members)), ...(rest ? [rest] : [])])

  function member(key: string, value: unknown, needed: boolean): string {
    const comment = isSchema(value) ? remarks(value) : ''
    const name = `${propertyName(key)}${needed ? '' : '?'}`
    place.allowance.spend(name.length + comment.length + 4)
    const { text } = write(value, place)
    return comment === '' ? `${name}: ${text}` : `/** ${comment} */\n${name}: ${text}`
  }
}

export const propertyName = (key: string): string => (/^[A-Za-z_$][\w$]*$/.test(key) ? key : quoted(key))

/** Members in braces: on one line where they fit, else each on its own. */
export function body(members: readonly string[]): string {
  const line = `{ ${members.join('; ')} }`
  if (line.length <= maxLine && !line.includes('\n')) return line
  return `{\n${members.map((text) => `  ${text.replaceAll('\n', '\n  ')};`).join('\n')}\n}`
}

/** What members without a name of their own are; undefined where nothing is said about them. */
function others(schema: Schema, place: Place, write: WriteSchema): Type | undefined {
  const patterns = isSchema(schema.patternProperties) ? schema.patternProperties : {}
  const types: Type[] = []
  for (const key of place.allowance.keys(patterns)) {
    if (place.allowance.spent) break
    types.push(write(patterns[key], place))
  }
  if (isSchema(schema.additionalProperties)) types.push(write(schema.additionalProperties, place))
  if (types.length === 0) return undefined
  return atom(`Record<string, ${union(types).text}>`)
}
