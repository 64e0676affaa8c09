import { Ajv, type CodeKeywordDefinition, type ErrorObject, type FuncKeywordDefinition, type Options } from 'ajv'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { _ } from 'ajv/dist/compile/codegen/index.js'
import { RE2JS } from 're2js'
import { addExactKeywords, allDifferent, withExact } from './exact.ts'
import { budget, charge, chargeForWhole, formats, stepsPerCheck } from './keyword-checks.ts'
import { type Cost, costKeyword, prepare } from './prepare.ts'

/**
 * Returns the problems; empty if valid. Throws `BudgetSpent` if the check takes too long. A check of exact numbers also
 * takes the arguments with `Numeral`s.
 */
export type SchemaCheck = (args: unknown, exact?: unknown) => readonly ErrorObject[]

export interface Compiled {
  /** Stops at the first problem. */
  readonly check: SchemaCheck
  /** Finds all problems; compiled on first use. */
  readonly explain: SchemaCheck
}

type Fields = Readonly<Record<string, unknown>>
type Draft = typeof Ajv | typeof Ajv2019 | typeof Ajv2020

/** Every error allocates an object, and a model fixes only a few at a time. */
const stepsPerExplanation = 20_000

/** Never throws. */
export function compile(schema: Fields, exact = false): Compiled | { readonly unfit: string } {
  const prepared = prepare(schema, exact)
  if ('unfit' in prepared) return prepared
  for (const draft of draftsOf(schema.$schema)) {
    try {
      const check = checkWith(draft, prepared.schema, { allErrors: false, messages: false }, stepsPerCheck, exact)
      // Detect a schema that never terminates now instead of in every call.
      check({})
      let thorough: SchemaCheck | undefined
      const explain: SchemaCheck = (...args) => {
        thorough ??= checkWith(draft, prepared.schema, { allErrors: true, verbose: true }, stepsPerExplanation, exact)
        return thorough(...args)
      }
      return { check, explain }
    } catch {
      // Another draft may accept it.
    }
  }
  return { unfit: 'it cannot be compiled' }
}

/** Without `$schema` the latest draft applies, but many servers use an older one without naming it. */
function draftsOf(named: unknown): readonly Draft[] {
  if (typeof named !== 'string') return [Ajv2020, Ajv]
  if (/draft-0[4-7]/.test(named)) return [Ajv]
  return named.includes('2019-09') ? [Ajv2019] : [Ajv2020]
}

/** One compiler per schema: in a shared one, schemas could refer to one another. */
function checkWith(Draft: Draft, schema: object, options: Options, steps: number, exact: boolean): SchemaCheck {
  // Optimizing takes five times as long as it saves.
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
    // Errors reference the arguments; release them.
    validate.errors = null
    return errors
  }
  return exact ? (args, digits = args) => withExact(args, digits, () => check(args)) : check
}

const common: Options = {
  strict: false,
  validateSchema: false,
  meta: false,
  // Inherited members such as `constructor` are not arguments.
  ownProperties: true,
  // A number too large for JSON is forwarded as null, so it must not pass as a number.
  strictNumbers: true,
  // A large definition that is used often would be compiled each time.
  inlineRefs: false,
  logger: false,
  formats,
}

/** Charges the cost of a subschema before any other keyword of it runs. */
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

/** Longer strings are not matched against patterns; the server has to do that. */
const maxMatched = 64 * 1024

/** Compiling blocks the event loop: up to 0.1 ms per instruction, and superlinear in the pattern's length. */
const maxPattern = 2048
const maxInstructions = 4096

/** Instructions of a compiled pattern per budget step, for each character. */
const instructionsPerStep = 16

interface Pattern {
  test(text: string): boolean
  /** The compiler treats patterns with equal text as one. */
  toString(): string
}

/**
 * Matches the patterns of one schema in linear time. Patterns that RE2 does not support (lookaheads, back-references)
 * match everything, and so do patterns beyond the limits of a schema: a pattern that could block the process is worse
 * than one that only the server checks. Throws for an invalid pattern, so that its schema fails to compile.
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
    return RE2JS.compile(RE2JS.translateRegExp(source))
  } catch {
    if (!isPattern(source)) throw new SyntaxError('not a valid regular expression')
    return undefined
  }
}

/** JSON Schema requires Unicode patterns, but many are written in the older syntax. */
const isPattern = (source: string): boolean => parses(source, 'u') || parses(source, '')

function parses(source: string, flags: string): boolean {
  try {
    new RegExp(source, flags)
    return true
  } catch {
    return false
  }
}
