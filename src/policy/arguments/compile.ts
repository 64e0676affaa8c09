import { Ajv, type CodeKeywordDefinition, type ErrorObject, type FuncKeywordDefinition, type Options } from 'ajv'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { _ } from 'ajv/dist/compile/codegen/index.js'
import { RE2JS } from 're2js'
import { budget, charge, chargeForWhole, stepsPerCheck } from './budget.ts'
import { addExactKeywords, allDifferent, withExact } from './exact.ts'
import { formats } from './plain.ts'
import { type Cost, costKeyword, prepare } from './prepare.ts'

/**
 * What does not fit, nothing if all is well. Throws `BudgetSpent` where that takes too long to find out. A check of exact
 * numbers takes the arguments with `Numeral`s, too.
 */
export type SchemaCheck = (args: unknown, exact?: unknown) => readonly ErrorObject[]

export interface Compiled {
  /** Stops at the first problem. */
  readonly check: SchemaCheck
  /** Finds more than one; compiled when it is first needed. */
  readonly explain: SchemaCheck
}

type Fields = Readonly<Record<string, unknown>>
type Draft = typeof Ajv | typeof Ajv2019 | typeof Ajv2020

/** Each error is an object of its own, and a model mends a few at a time. */
const stepsPerExplanation = 20_000

/** Makes a check of a schema, or says why it cannot be checked against. Never throws. */
export function compile(schema: Fields, exact = false): Compiled | { readonly unfit: string } {
  const prepared = prepare(schema, exact)
  if ('unfit' in prepared) return prepared
  for (const draft of draftsOf(schema.$schema)) {
    try {
      const check = checkWith(draft, prepared.schema, { allErrors: false, messages: false }, stepsPerCheck, exact)
      // A schema that never ends, whatever it is asked, shows it here and not in every call.
      check({})
      let thorough: SchemaCheck | undefined
      const explain: SchemaCheck = (...args) => {
        thorough ??= checkWith(draft, prepared.schema, { allErrors: true, verbose: true }, stepsPerExplanation, exact)
        return thorough(...args)
      }
      return { check, explain }
    } catch {
      // Perhaps another draft takes it.
    }
  }
  return { unfit: 'it cannot be compiled' }
}

/** Where none is named it is the latest, but many servers mean the one before and do not say so. */
function draftsOf(named: unknown): readonly Draft[] {
  if (typeof named !== 'string') return [Ajv2020, Ajv]
  if (/draft-0[4-7]/.test(named)) return [Ajv]
  return named.includes('2019-09') ? [Ajv2019] : [Ajv2020]
}

/** A compiler for each schema: in a shared one, they could refer to one another. */
function checkWith(Draft: Draft, schema: object, options: Options, steps: number, exact: boolean): SchemaCheck {
  // Optimising takes five times as long as it saves.
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
    // They hold on to the arguments.
    validate.errors = null
    return errors
  }
  return exact ? (args, digits = args) => withExact(args, digits, () => check(args)) : check
}

const common: Options = {
  strict: false,
  validateSchema: false,
  meta: false,
  // What every object inherits, such as `constructor`, is no argument.
  ownProperties: true,
  // What is too large to be a number in JSON is sent on as null, and must not pass for one.
  strictNumbers: true,
  // A large definition that is used often would be compiled as often.
  inlineRefs: false,
  logger: false,
  formats,
}

/** Pays for each look at a subschema, before anything else in it is looked at. */
const cost: CodeKeywordDefinition = {
  keyword: costKeyword,
  schemaType: 'object',
  code({ gen, schema, data }) {
    const { steps, passes } = schema as Cost
    const purse = gen.scopeValue('obj', { ref: budget, key: budget })
    gen.code(_`if ((${purse}.left -= ${steps}) < 0) throw ${purse}.spent`)
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

/** Strings longer than this are not matched against patterns: the server has to do it. */
const longest = 64 * 1024

/** Compiling takes up to 0.1 ms for each instruction and grows faster than a pattern's length, and everybody else waits. */
const maxPattern = 2048
const maxInstructions = 4096

/** Instructions of a compiled pattern that one step of the budget pays for, for each character. */
const instructionsPerStep = 16

interface Pattern {
  test(text: string): boolean
  /** The compiler takes patterns that read alike for one. */
  toString(): string
}

/**
 * Patterns of one schema, matched in linear time. What that engine does not know (lookaheads, back-references) matches
 * everything, and so does what is more than the patterns of a schema may be: a pattern that might stall the process is
 * worse than one that the server checks alone. Throws for what is not a pattern at all: its schema cannot be compiled.
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
    if (text.length > longest) return true
    charge(cost * (text.length + 1))
    return pattern.test(text)
  }
}

function compiled(source: string): RE2JS | undefined {
  try {
    return RE2JS.compile(RE2JS.translateRegExp(source))
  } catch {
    if (!isPattern(source)) throw new SyntaxError('not a regular expression')
    return undefined
  }
}

/** JSON Schema asks for Unicode patterns, but many are written for the older syntax. */
const isPattern = (source: string): boolean => parses(source, 'u') || parses(source, '')

function parses(source: string, flags: string): boolean {
  try {
    new RegExp(source, flags)
    return true
  } catch {
    return false
  }
}
