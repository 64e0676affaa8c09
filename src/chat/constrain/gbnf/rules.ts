import { CannotExpress, type WorkBudget } from '../conversion.ts'
import type { Flatten } from '../flatten.ts'
import type { AnySchema } from '../schema.ts'
import { type CodePointRange, type Expression, rule } from './expression.ts'

/** The named rules of a grammar under construction. */
export interface GrammarRules {
  /** Returns the rule for this expression, named after the hint; equal expressions share a rule. */
  define(hint: string, meaning: Expression): Expression
  /** The whole grammar, starting with this rule. */
  grammar(root: Expression): string
}

/** Larger grammars are refused. */
const longest = 512 * 1024

const tooLarge = (): CannotExpress => new CannotExpress('', 'the schema', 'produces too large a grammar')

export function createGrammarRules(): GrammarRules {
  const bodies = new Map<string, string>()
  const names = new Map<string, string>()
  /** The number of rules per hint. */
  const numbers = new Map<string, number>()
  let length = 0

  const nameFor = (hint: string): string => {
    const plain =
      hint
        .replace(/[^A-Za-z0-9]+/g, '-')
        .replace(/^-+|-+$/g, '')
        .slice(0, 40) || 'rule'
    let number = numbers.get(plain) ?? 0
    let name: string
    do name = ++number === 1 ? plain : `${plain}-${number}`
    while (name === 'root' || bodies.has(name))
    numbers.set(plain, number)
    return name
  }

  const add = (name: string, body: string): void => {
    length += name.length + body.length
    if (length > longest) throw tooLarge()
    bodies.set(name, body)
  }

  const written = (meaning: Expression): string => print(hoisted(meaning, (group) => define('part', group)))

  const define = (hint: string, meaning: Expression): Expression => {
    if (meaning.kind === 'rule') return meaning
    const body = written(meaning)
    let name = names.get(body)
    if (name === undefined) {
      name = nameFor(hint)
      names.set(body, name)
      add(name, body)
    }
    return rule(name)
  }

  return {
    define,
    grammar(root) {
      const first = written(root)
      if (length + first.length > longest) throw tooLarge()
      const lines = [...bodies].map(([name, body]) => `${name} ::= ${body}`)
      return [`root ::= ${first}`, ...lines, ''].join('\n')
    },
  }
}

/** llama.cpp refuses a group whose rules times repetitions exceed 2,000; other parsers may allow less. */
const most = 200

/**
 * Moves large repeated groups into rules of their own: parsers unfold a repeated group, but count a rule name as one
 * symbol.
 */
function hoisted(expression: Expression, define: (group: Expression) => Expression): Expression {
  switch (expression.kind) {
    case 'all':
      return { ...expression, parts: expression.parts.map((part) => hoisted(part, define)) }
    case 'any':
      return { ...expression, options: expression.options.map((option) => hoisted(option, define)) }
    case 'times': {
      const inner = hoisted(expression.inner, define)
      const unfolded = isGroup(inner) ? (1 + rulesOf(inner)) * expression.max : 0
      return { ...expression, inner: unfolded > most ? define(inner) : inner }
    }
    default:
      return expression
  }
}

const isGroup = ({ kind }: Expression): boolean => kind === 'all' || kind === 'any' || kind === 'times'

/** The number of rules that a parser creates for it. */
function rulesOf(expression: Expression): number {
  switch (expression.kind) {
    case 'all':
      return expression.parts.reduce((sum, part) => sum + rulesOf(part), 1)
    case 'any':
      return expression.options.reduce((sum, option) => sum + rulesOf(option), 1)
    case 'times':
      return rulesOf(expression.inner) + expression.max - expression.min
    default:
      return 0
  }
}

/** Prints an expression as GBNF. */
function print(expression: Expression): string {
  switch (expression.kind) {
    case 'text':
      return `"${[...expression.text].map(inText).join('')}"`
    case 'set':
      return `[${expression.ranges.map(printRange).join('')}]`
    case 'all':
      return expression.parts.map((part) => grouped(part, part.kind === 'any')).join(' ')
    case 'any':
      return expression.options.map(print).join(' | ')
    case 'times':
      return grouped(expression.inner, isSeveral(expression.inner)) + printTimes(expression.min, expression.max)
    case 'rule':
      return expression.name
  }
}

const grouped = (expression: Expression, group: boolean): string =>
  group ? `(${print(expression)})` : print(expression)

/** Whether a repetition needs parentheses. A text counts as one symbol. */
const isSeveral = ({ kind }: Expression): boolean => kind === 'all' || kind === 'any' || kind === 'times'

function printTimes(min: number, max: number): string {
  if (min === 0 && max === 1) return '?'
  return min === max ? `{${min}}` : `{${min},${max}}`
}

function inText(sign: string): string {
  if (sign === '"' || sign === '\\') return `\\${sign}`
  if (sign === '\n') return '\\n'
  return isPlain(sign.codePointAt(0) as number) ? sign : escaped(sign.codePointAt(0) as number)
}

const printRange = ([from, to]: CodePointRange): string => (from === to ? inSet(from) : `${inSet(from)}-${inSet(to)}`)

/** Escape everything but letters and digits: parsers differ on the rest. */
const inSet = (point: number): string =>
  /[A-Za-z0-9]/.test(String.fromCodePoint(point)) ? String.fromCodePoint(point) : escaped(point)

const isPlain = (point: number): boolean => point >= 0x20 && point < 0x7f

function escaped(point: number): string {
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

/** Bounds where the schema sets none, so that a runaway model stops. */
export interface GrammarLimits {
  readonly string: number
  readonly items: number
  /** Members of an object that the schema does not name. */
  readonly members: number
  /** Nesting of values without a schema. */
  readonly freeDepth: number
  /** Nesting of schemas that refer to themselves. */
  readonly recursion: number
}

export const defaultLimits: GrammarLimits = { string: 4096, items: 64, members: 16, freeDepth: 3, recursion: 4 }

/** Upper limits for the schema's own bounds; a narrower grammar is still correct. */
export const maxCharacters = 65_536
export const maxUnrolledItems = 1024

/** Length of names that the schema does not list. */
export const maxKeyCharacters = 48
