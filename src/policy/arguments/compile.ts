import { Ajv, type CodeKeywordDefinition, type ErrorObject, type FuncKeywordDefinition, type Options } from 'ajv'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { _ } from 'ajv/dist/compile/codegen/index.js'
import { RE2JS } from 're2js'
import { addExactKeywords, allDifferent, withExact } from './exact.ts'
import { budget, charge, chargeForWhole, formats, stepsPerCheck } from './keyword-checks.ts'
import { type Cost, costKeyword, prepare } from './prepare.ts'

/**
 * Checks arguments and returns the problems; empty if the arguments are valid. Throws `BudgetSpent` if the check takes
 * too long. A check of exact numbers also takes `exact`, the arguments with `ExactNumber`s.
 */
export type SchemaCheck = (args: unknown, exact?: unknown) => readonly ErrorObject[]

export interface Compiled {
  /** A check that stops at the first problem. */
  readonly check: SchemaCheck
  /** A check that finds all problems. It is compiled on first use. */
  readonly explain: SchemaCheck
}

type Fields = Readonly<Record<string, unknown>>
type Draft = typeof Ajv | typeof Ajv2019 | typeof Ajv2020

/**
 * The budget for a full check. It is smaller than that for a normal check, because every error allocates an object, and
 * a model fixes only a few errors at a time.
 */
const stepsPerExplanation = 20_000

/** Compiles a schema. Never throws: `unfit` says why a schema cannot be used. */
export function compile(schema: Fields, exact = false): Compiled | { readonly unfit: string } {
  const prepared = prepare(schema, exact)
  if ('unfit' in prepared) return prepared
  let problem: unknown
  for (const draft of draftsOf(schema.$schema)) {
    try {
      const check = checkWith(draft, prepared.schema, { allErrors: false, messages: false }, stepsPerCheck, exact)
      // Run the check once: a schema whose check never ends must be detected now, not on every call.
      check({})
      let thorough: SchemaCheck | undefined
      const explain: SchemaCheck = (...args) => {
        thorough ??= checkWith(draft, prepared.schema, { allErrors: true, verbose: true }, stepsPerExplanation, exact)
        return thorough(...args)
      }
      return { check, explain }
    } catch (thrown) {
      // Try the next draft, which may accept the schema.
      problem ??= thrown
    }
  }
  return { unfit: `it is invalid: ${excerpt(problem)}` }
}

/** The beginning of an error's message, which may contain text from the schema. */
const excerpt = (thrown: unknown): string =>
  JSON.stringify((thrown instanceof Error ? thrown.message : '').slice(0, 100).replaceAll(/[^\x20-\x7e]+/g, ' '))

/** The drafts to try. Without `$schema` the latest applies, but many servers use an older one without naming it. */
function draftsOf(named: unknown): readonly Draft[] {
  if (typeof named !== 'string') return [Ajv2020, Ajv]
  if (/draft-0[4-7]/.test(named)) return [Ajv]
  return named.includes('2019-09') ? [Ajv2019] : [Ajv2020]
}

/** Compiles a check with one draft. Each schema has its own compiler, so that schemas cannot refer to one another. */
function checkWith(Draft: Draft, schema: object, options: Options, steps: number, exact: boolean): SchemaCheck {
  // Do not optimize: optimizing takes five times as much time as it saves.
  const code = { optimize: false, regExp: Object.assign(linearPatterns(), { code: 'linearPattern' }) }
  const compiler = new Draft({ ...common, ...options, code })
  compiler.removeKeyword('uniqueItems')
  compiler.addKeyword(uniqueItems)
  if (exact) addExactKeywords(compiler)
  compiler.addKeyword({ ...cost, before: Draft === Ajv ? '$ref' : '$dynamicAnchor' })
  const validate = compiler.compile(schema)
  const check: SchemaCheck = (args) => {
    budget.left = steps
    if (validate(args)) return []
    const errors = validate.errors ?? []
    // Release the errors, because they reference the arguments.
    validate.errors = null
    return errors
  }
  return exact ? (args, digits = args) => withExact(args, digits, () => check(args)) : check
}

const common: Options = {
  strict: false,
  validateSchema: false,
  meta: false,
  // Inherited members such as `constructor` do not count as arguments.
  ownProperties: true,
  // A number that is too large for a double would be forwarded as null, so it must not be accepted as a number.
  strictNumbers: true,
  // Do not inline references, because a large definition would be compiled again for each reference to it.
  inlineRefs: false,
  logger: false,
  formats,
}

/** A keyword that charges a subschema's cost before any of its other keywords run. */
const cost: CodeKeywordDefinition = {
  keyword: costKeyword,
  schemaType: 'object',
  code({ gen, schema, data }) {
    const { steps, passes } = schema as Cost
    const counter = gen.scopeValue('obj', { ref: budget, key: budget })
    gen.code(_`if ((${counter}.left -= ${steps}) < 0) throw ${counter}.spent`)
    if (passes > 0) gen.code(_`${gen.scopeValue('func', { ref: chargeForWhole })}(${data}, ${passes})`)
  },
}

const uniqueItems: FuncKeywordDefinition = {
  keyword: 'uniqueItems',
  type: 'array',
  schemaType: 'boolean',
  errors: false,
  validate: (wanted: boolean, items: readonly unknown[]) => !wanted || allDifferent(items),
}

/** Max characters in a string matched against a pattern. For longer strings, only the server checks the pattern. */
const maxMatched = 64 * 1024

/** Limits for patterns. Compiling blocks the event loop, up to 0.1 ms per instruction, and takes superlinear time. */
const maxPattern = 2048
const maxInstructions = 4096

/** How many instructions of a compiled pattern cost one budget step, for each character of the text. */
const instructionsPerStep = 16

interface Pattern {
  test(text: string): boolean
  /** The text of the pattern. The compiler treats patterns with equal text as the same pattern. */
  toString(): string
}

/**
 * Matches the patterns of one schema in linear time. Patterns that RE2 does not support (lookaheads, back-references)
 * match everything, and so do patterns beyond the limits: it is better to leave a pattern to the server than to let it
 * block the process. Throws for an invalid pattern, so that its schema fails to compile.
 */
function linearPatterns(): (source: string) => Pattern {
  let left = maxInstructions
  return (source) => {
    const pattern = left > 0 && source.length <= maxPattern ? compiled(source) : undefined
    left -= pattern?.programSize() ?? 0
    return { test: pattern ? linear(pattern) : () => true, toString: () => source }
  }
}

function linear(pattern: RE2JS): Pattern['test'] {
  const cost = Math.ceil(pattern.programSize() / instructionsPerStep)
  return (text) => {
    if (text.length > maxMatched) return true
    charge(cost * (text.length + 1))
    return pattern.test(text)
  }
}

function compiled(source: string): RE2JS | undefined {
  try {
    const joined = withWholeCharacters(source)
    return unsupported(joined) ? undefined : RE2JS.compile(withUnicodeSpaces(RE2JS.translateRegExp(joined)))
  } catch {
    if (!isPattern(source)) throw new SyntaxError(`not a valid regular expression: ${source}`)
    return undefined
  }
}

/** Replaces the escapes of surrogate pairs, `\\ud83d\\ude00`, with those of the characters that they mean. */
const withWholeCharacters = (source: string): string =>
  source.replace(/\\u(d[89ab]..)\\u(d[c-f]..)|\\[\s\S]/gi, (found, high, low) => {
    if (high === undefined) return found
    const code = String.fromCharCode(Number.parseInt(high, 16), Number.parseInt(low, 16)).codePointAt(0) as number
    return `\\u{${code.toString(16)}}`
  })

/**
 * Whether a pattern has an escape that would be compiled as ordinary characters: a named back-reference, a lone
 * surrogate, or the end of the text in Python.
 */
const unsupported = (source: string): boolean =>
  source.match(/\\(?:u[dD][89a-fA-F]|[\s\S])/g)?.some((found) => found.length > 2 || /[kZ]/.test(found)) ?? false

// Each ends with a class, so that a hyphen after it does not make a range: `[\s-x]`.
const spaces = String.raw`\t-\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}\s`
const others = String.raw`\x00-\x08\x0E-\x1F\x21-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027}\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{FEFE}\x{FF00}-\x{10FFFF}\d`

/** Replaces `\s` and `\S`, which match only ASCII in RE2, with the classes of ECMAScript. */
function withUnicodeSpaces(source: string): string {
  let isClass = false
  return source.replace(/\\[\s\S]|[[\]]/g, (found) => {
    if (found === '[' || found === ']') isClass = found === '['
    if (found !== '\\s' && found !== '\\S') return found
    const signs = found === '\\s' ? spaces : others
    return isClass ? signs : `[${signs}]`
  })
}

/** Whether a pattern is valid. JSON Schema requires Unicode patterns, but many are written in the older syntax. */
const isPattern = (source: string): boolean => parses(source, 'u') || parses(source, '')

function parses(source: string, flags: string): boolean {
  try {
    new RegExp(source, flags)
    return true
  } catch {
    return false
  }
}
