import { CannotExpress } from '../conversion.ts'
import { type JsonSchemaObject, numberIn } from '../schema.ts'
import { anyString, character } from './characters.ts'
import type { Expression } from './expression.ts'
import { patternString } from './pattern.ts'
import { type GrammarContext, maxCharacters } from './rules.ts'

export function texts(context: GrammarContext, schema: JsonSchemaObject, at: string): Expression | undefined {
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

function patternOf(schema: JsonSchemaObject, at: string): string | undefined {
  const format = typeof schema.format === 'string' ? formatPattern(schema.format) : undefined
  if (format === false) throw new CannotExpress(at, 'format', `${schema.format} is not supported`)
  if (schema.pattern === undefined) return format
  if (typeof schema.pattern !== 'string') throw new CannotExpress(at, 'pattern', 'is not a string')
  if (format !== undefined) throw new CannotExpress(at, 'pattern', 'cannot be combined with format')
  return schema.pattern
}

const day =
  '(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))'
const date = `\\d{4}-${day}`
const time = '(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)'
const label = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?'
const host = `${label}(?:\\.${label}){0,4}`
const octet = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)'
const ipv4 = `(?:${octet}\\.){3}${octet}`
const hex = '[0-9A-Fa-f]'
const path = `(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%${hex}{2})`
const query = `(?:\\?(?:${path}|[/?]){0,128})?(?:#(?:${path}|[/?]){0,64})?`
const tail = `(?:/${path}{0,64}){0,16}${query}`
const uri = `[A-Za-z][A-Za-z0-9+.-]{0,15}:(?://(?:${host}(?::\\d{1,5})?)?${tail}|${path}(?:${path}|/){0,128}${query})`
// A path must not start with two slashes, because the next segment would then be a host name.
const rooted = `(?:/(?:${path}{1,64}(?:/${path}{0,64}){0,15})?)?${query}`
const reference = `(?:${uri}|[A-Za-z0-9._~-]{1,64}${tail}|${rooted})`
const email = `[A-Za-z0-9_+-]{1,32}(?:\\.[A-Za-z0-9_+-]{1,32}){0,2}@${label}(?:\\.${label}){1,4}`

/** Patterns for the JSON Schema formats. Each allows less than the standard: no leap days, no unusual addresses. */
const patterns: Readonly<Record<string, string>> = {
  date,
  time,
  'date-time': `${date}T${time}`,
  duration: 'P(?:\\d{1,4}[YMWD]|T\\d{1,4}[HMS]|\\d{1,4}DT\\d{1,4}[HMS])',
  email,
  'idn-email': email,
  hostname: host,
  'idn-hostname': host,
  ipv4,
  ipv6: `(?:${hex}{1,4}:){7}${hex}{1,4}`,
  uri,
  iri: uri,
  'uri-reference': reference,
  'iri-reference': reference,
  uuid: `${hex}{8}-${hex}{4}-${hex}{4}-${hex}{4}-${hex}{12}`,
  'json-pointer': '(?:/[A-Za-z0-9_.-]{0,64}){0,16}',
}

/** Standard formats that would need too large a grammar. */
const inexpressible = new Set(['regex', 'uri-template', 'relative-json-pointer'])

/** The pattern for a format; `undefined` for unknown formats, which are annotations; `false` for inexpressible ones. */
function formatPattern(format: string): string | undefined | false {
  if (inexpressible.has(format)) return false
  return Object.hasOwn(patterns, format) ? `^(?:${patterns[format]})$` : undefined
}
