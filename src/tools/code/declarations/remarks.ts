import { commentText, plainText, quoted } from './plain-text.ts'
import type { Schema } from './schema.ts'

const maxDescription = 300
const maxFact = 60

/** What a type cannot say, in one line for a comment: what it is for, its format and bounds, what it is by default. */
export function remarks(schema: Schema): string {
  const said = plainText(schema.description ?? schema.title, maxDescription)
  const facts = worded.flatMap(([keyword, word]) => factOf(schema[keyword], word))
  if ('default' in schema) facts.push(`default ${defaultOf(schema.default)}`)
  return commentText([said, facts.join(', ')].filter((part) => part !== '').join(' — '), 2 * maxDescription)
}

const worded = [
  ['format', 'format'],
  ['pattern', 'pattern'],
  ['minimum', 'at least'],
  ['maximum', 'at most'],
  ['exclusiveMinimum', 'more than'],
  ['exclusiveMaximum', 'less than'],
  ['multipleOf', 'multiple of'],
  ['minLength', 'min length'],
  ['maxLength', 'max length'],
  ['minItems', 'min items'],
  ['maxItems', 'max items'],
] as const

const factOf = (value: unknown, word: string): string[] =>
  typeof value === 'string' || typeof value === 'number' ? [`${word} ${plainText(String(value), maxFact)}`] : []

function defaultOf(value: unknown): string {
  if (typeof value === 'string') return plainText(quoted(value.slice(0, maxFact)), maxFact)
  if (Array.isArray(value)) return value.length === 0 ? '[]' : '[…]'
  return typeof value === 'object' && value !== null ? '{…}' : String(value)
}
