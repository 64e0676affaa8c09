import { withNumericBounds } from '../../../core/schema-keywords.ts'
import { ExactNumber } from '../../../json/parse-json.ts'
import { commentText, quoteLiteral, visibleLine } from '../text.ts'

/** The text of a type. `joined` means that it needs parentheses when combined with another type. */
export interface TypeText {
  readonly text: string
  readonly joined: boolean
}

export const atom = (text: string): TypeText => ({ text, joined: false })
export const unknownTypeText = atom('unknown')

export const closedType = ({ text, joined }: TypeText): string => (joined ? `(${text})` : text)

export function union(types: readonly TypeText[]): TypeText {
  const different = distinct(types)
  if (different.length === 0 || different.some(({ text }) => text === 'unknown')) return unknownTypeText
  if (different.length === 1) return different[0] as TypeText
  return { text: different.map(closedType).join(' | '), joined: true }
}

export function intersection(types: readonly TypeText[]): TypeText {
  const different = distinct(types).filter(({ text }) => text !== 'unknown')
  if (different.length <= 1) return different[0] ?? unknownTypeText
  return { text: different.map(closedType).join(' & '), joined: true }
}

const distinct = (types: readonly TypeText[]): readonly TypeText[] => [
  ...new Map(types.map((type) => [type.text, type])).values(),
]

export type TextBudget = ReturnType<typeof createTextBudget>

/** Limits the work by the size of the output, because references can make a small schema expand without end. */
export function createTextBudget(characters: number) {
  let left = characters
  return {
    get spent() {
      return left <= 0
    },
    spend(count: number): void {
      left -= count
    },
    /** The keys of an object. Reading the keys uses up budget even if they do not appear in the output. */
    keys(object: object): readonly string[] {
      const keys = Object.keys(object)
      left -= Math.min(keys.length / 10, 500)
      return keys
    },
  }
}

/** A JSON Schema from a server, not validated. */
export type ToolJsonSchema = Readonly<Record<string, unknown>>

export const listOrEmpty = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const maxString = 500
const maxLiteralDepth = 4

export function literalType(value: unknown, budget: TextBudget, depth = 0): string | undefined {
  if (budget.spent || depth > maxLiteralDepth) return undefined
  const text = simpleLiteral(value)
  if (text !== undefined) {
    budget.spend(text.length)
    return text
  }
  if (Array.isArray(value)) {
    const items = everyText(value, (item) => literalType(item, budget, depth + 1))
    return items && `[${items.join(', ')}]`
  }
  if (typeof value !== 'object' || value === null) return undefined
  const members = everyText(budget.keys(value), (key) => {
    const type = literalType((value as Record<string, unknown>)[key], budget, depth + 1)
    return type && key.length <= maxString ? `${quoteLiteral(key)}: ${type}` : undefined
  })
  return members && (members.length === 0 ? '{}' : `{ ${members.join('; ')} }`)
}

function simpleLiteral(value: unknown): string | undefined {
  if (value === null || typeof value === 'boolean') return String(value)
  // JSON.parse turns a number that is too large into Infinity, which is not a valid type.
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : 'number'
  if (value instanceof ExactNumber) return value.source.length <= maxFact ? value.source : 'number'
  return typeof value === 'string' && value.length <= maxString ? quoteLiteral(value) : undefined
}

export function everyText<T>(values: readonly T[], write: (value: T) => string | undefined): string[] | undefined {
  const written: string[] = []
  for (const value of values) {
    const type = write(value)
    if (type === undefined) return undefined
    written.push(type)
  }
  return written
}

const maxRemark = 300
const maxFact = 60

/** The parts of a schema that a type cannot express (description, format, bounds, default), for a comment. */
export function schemaRemarks(given: ToolJsonSchema): string {
  const schema = withNumericBounds(given)
  const description = visibleLine(schema.description ?? schema.title, maxRemark)
  const facts = factWords.flatMap(([keyword, word]) => factOf(schema[keyword], word))
  if ('default' in schema) facts.push(`default ${defaultOf(schema.default)}`)
  return commentText([description, facts.join(', ')].filter((part) => part !== '').join(' — '), 2 * maxRemark)
}

const factWords = [
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

function factOf(value: unknown, word: string): string[] {
  const text = value instanceof ExactNumber ? value.source : value
  return typeof text === 'string' || typeof text === 'number' ? [`${word} ${visibleLine(String(text), maxFact)}`] : []
}

function defaultOf(value: unknown): string {
  if (typeof value === 'string') return visibleLine(quoteLiteral(value.slice(0, maxFact)), maxFact)
  if (value instanceof ExactNumber) return visibleLine(value.source, maxFact)
  if (Array.isArray(value)) return value.length === 0 ? '[]' : '[…]'
  return typeof value === 'object' && value !== null ? '{…}' : String(value)
}
