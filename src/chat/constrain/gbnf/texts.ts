import { CannotExpress } from '../cannot-express.ts'
import { numberIn, type SchemaObject } from '../schema.ts'
import type { Context } from './context.ts'
import type { Expression } from './expression.ts'
import { formatPattern } from './formats.ts'
import { maxCharacters } from './limits.ts'
import { patternString } from './pattern/index.ts'
import { anyString, character } from './strings.ts'

/** The strings that a schema allows. */
export function texts(context: Context, schema: SchemaObject, at: string): Expression | undefined {
  const { rules, limits } = context
  const min = numberIn(schema.minLength) ?? 0
  const max = Math.min(numberIn(schema.maxLength) ?? Math.max(limits.string, min), maxCharacters)
  if (min > maxCharacters) throw new CannotExpress(at, 'minLength', 'is too large')
  if (min > max) return undefined
  const pattern = patternOf(schema, at)
  if (pattern === undefined) {
    const isPlain = schema.minLength === undefined && schema.maxLength === undefined
    return rules.define(isPlain ? 'string' : 'text', anyString(rules.define('char', character), min, max))
  }
  const found = patternString(pattern, { min, max }, at)
  return found && rules.define(typeof schema.format === 'string' ? schema.format : 'pattern', found)
}

function patternOf(schema: SchemaObject, at: string): string | undefined {
  const format = typeof schema.format === 'string' ? formatPattern(schema.format) : undefined
  if (format === false) throw new CannotExpress(at, 'format', `${schema.format} is not known`)
  if (schema.pattern === undefined) return format
  if (typeof schema.pattern !== 'string') throw new CannotExpress(at, 'pattern', 'is no text')
  if (format !== undefined) throw new CannotExpress(at, 'pattern', 'stands beside a format')
  return schema.pattern
}
