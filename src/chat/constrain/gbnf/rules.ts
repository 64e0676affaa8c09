import { CannotExpress, type WorkBudget } from '../conversion.ts'
import type { Flatten } from '../references.ts'
import type { AnySchema, JsonSchemaObject } from '../schema.ts'
import type { CodePointRange, Expression } from './expression.ts'

/** Maximum length of a grammar; longer ones are refused. */
const maxGrammarLength = 512 * 1024

/** The rules of a grammar; equal expressions share a rule. */
export class GrammarRules {
  readonly #bodies = new Map<string, string>()
  readonly #names = new Map<string, string>()
  readonly #numbers = new Map<string, number>()
  #length = 0

  /** Returns the rule for this expression, named after the hint. */
  define(hint: string, meaning: Expression): Expression {
    if (meaning.kind === 'rule') return meaning
    const body = this.#print(meaning)
    let name = this.#names.get(body)
    if (name === undefined) {
      name = this.#nameFor(hint)
      this.#names.set(body, name)
      this.#grow(name.length + body.length)
      this.#bodies.set(name, body)
    }
    return { kind: 'rule', name }
  }

  /** Returns the whole grammar, with this expression as its root rule. */
  grammar(root: Expression): string {
    const first = this.#print(root)
    this.#grow(first.length)
    const lines = [...this.#bodies].map(([name, body]) => `${name} ::= ${body}`)
    return [`root ::= ${first}`, ...lines, ''].join('\n')
  }

  #print(meaning: Expression): string {
    return printExpression(hoistGroups(meaning, (group) => this.define('part', group)))
  }

  #nameFor(hint: string): string {
    const letters = hint.replace(/[^A-Za-z0-9]+/g, '-').replace(/^-+|-+$/g, '')
    const plain = letters.slice(0, 40) || 'rule'
    let number = this.#numbers.get(plain) ?? 0
    let name: string
    do name = ++number === 1 ? plain : `${plain}-${number}`
    while (name === 'root' || this.#bodies.has(name))
    this.#numbers.set(plain, number)
    return name
  }

  #grow(by: number): void {
    this.#length += by
    if (this.#length > maxGrammarLength)
      throw new CannotExpress('', 'the schema', 'produces a grammar that is too large')
  }
}

/** Maximum number of rules for a repeated group. llama.cpp refuses more than 2,000; other parsers may allow fewer. */
const maxUnfolded = 200

/** Moves large repeated groups into separate rules: parsers unfold a group, but count a rule name as one symbol. */
function hoistGroups(expression: Expression, define: (group: Expression) => Expression): Expression {
  if ('parts' in expression) return { ...expression, parts: expression.parts.map((part) => hoistGroups(part, define)) }
  if (expression.kind !== 'times') return expression
  const inner = hoistGroups(expression.inner, define)
  const unfolded = isGroup(inner) ? (1 + countRules(inner)) * expression.max : 0
  return { ...expression, inner: unfolded > maxUnfolded ? define(inner) : inner }
}

/** Whether an expression needs parentheses to be repeated. A literal does not, because it counts as one symbol. */
const isGroup = ({ kind }: Expression): boolean => kind === 'all' || kind === 'any' || kind === 'times'

/** The number of rules that a parser creates for an expression. */
function countRules(expression: Expression): number {
  if ('parts' in expression) return expression.parts.reduce((sum, part) => sum + countRules(part), 1)
  return expression.kind === 'times' ? countRules(expression.inner) + expression.max - expression.min : 0
}

function printExpression(expression: Expression): string {
  switch (expression.kind) {
    case 'text':
      return `"${expression.text.replace(notPlain, inText)}"`
    case 'set':
      return `[${expression.ranges.map(printRange).join('')}]`
    case 'all':
      return expression.parts.map((part) => groupExpression(part, part.kind === 'any')).join(' ')
    case 'any':
      return expression.parts.map(printExpression).join(' | ')
    case 'times':
      return groupExpression(expression.inner, isGroup(expression.inner)) + printTimes(expression.min, expression.max)
    case 'rule':
      return expression.name
  }
}

const groupExpression = (expression: Expression, group: boolean): string =>
  group ? `(${printExpression(expression)})` : printExpression(expression)

function printTimes(min: number, max: number): string {
  if (min === 0 && max === 1) return '?'
  return min === max ? `{${min}}` : `{${min},${max}}`
}

/** Characters that must be escaped in a text. */
const notPlain = /["\\]|[^ -~]/gu

function inText(sign: string): string {
  if (sign === '"' || sign === '\\') return `\\${sign}`
  return sign === '\n' ? '\\n' : escapeCodePoint(sign.codePointAt(0) as number)
}

const printRange = ([from, to]: CodePointRange): string => (from === to ? inSet(from) : `${inSet(from)}-${inSet(to)}`)

/** A code point in a character class. Escapes all but letters and digits, because parsers differ on the rest. */
const inSet = (point: number): string =>
  /[A-Za-z0-9]/.test(String.fromCodePoint(point)) ? String.fromCodePoint(point) : escapeCodePoint(point)

function escapeCodePoint(point: number): string {
  const hex = (length: number): string => point.toString(16).toUpperCase().padStart(length, '0')
  if (point < 0x100) return `\\x${hex(2)}`
  return point < 0x10000 ? `\\u${hex(4)}` : `\\U${hex(8)}`
}

export interface ConversionDepth {
  readonly nesting: number
  /** How many more times cyclic references may be followed. */
  readonly recursion: number
}

/** State shared by all parts of the conversion. */
export interface GrammarContext {
  readonly budget: WorkBudget
  readonly flatten: Flatten
  readonly limits: GrammarLimits
  readonly rules: GrammarRules
  readonly cycles: ReadonlySet<string>
  /** Converts a schema; `undefined` if it allows nothing. */
  convert(schema: AnySchema, at: string, level: ConversionDepth): Expression | undefined
}

/** Converts a flat schema, or one aspect of it; `undefined` if it allows nothing. */
export type Conversion = (
  context: GrammarContext,
  schema: JsonSchemaObject,
  at: string,
  level: ConversionDepth,
) => Expression | undefined

/** Default bounds for schemas that set none. They stop a model that would never end a value. */
export const defaultGrammarLimits = {
  string: 4096,
  items: 64,
  /** Maximum number of members that the schema does not name. */
  members: 16,
  /** Maximum nesting of values without a schema. */
  freeDepth: 3,
  /** Maximum nesting of schemas that refer to themselves. */
  recursion: 4,
}

export type GrammarLimits = Readonly<typeof defaultGrammarLimits>

/** Limits for bounds that the schema sets. A grammar that allows less than the schema is still correct. */
export const maxStringCharacters = 65_536
export const maxUnrolledItems = 1024

/** Maximum length of names that the schema does not list. */
export const maxKeyCharacters = 48
