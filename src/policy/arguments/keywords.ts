import type { Fields } from '../../core/schema-keywords.ts'
import { ExactNumber } from '../../json/parse-json.ts'
import { isRecord } from '../../lib/is-record.ts'
import {
  charge,
  chargeForWhole,
  checkMember,
  checkRun,
  type Evaluated,
  type Keyword,
  noteProblem,
  quietly,
  stepBudget,
  stepsPerCheck,
  stepsPerMember,
  type ValueCheck,
} from './check-run.ts'
import type { PatternCompiler } from './patterns.ts'
import { type PreparedSchema, valuesIn } from './prepare.ts'
import { canonicalText, compare, type Digits, formatTests, isDigits, isMultiple, isWhole } from './values.ts'

export const compileChecks = ({ schema, tracks }: PreparedSchema, compilePattern?: PatternCompiler): ValueCheck =>
  new SchemaCompiler(tracks, compilePattern).compile(schema)

/** Turns each subschema into a function, once. */
class SchemaCompiler {
  readonly #checks = new Map<object, ValueCheck>()
  readonly #compilePattern: PatternCompiler | undefined
  /** Whether a subschema depends on which members others evaluated. */
  readonly #tracks: boolean

  constructor(tracks: boolean, compilePattern: PatternCompiler | undefined) {
    this.#tracks = tracks
    this.#compilePattern = compilePattern
  }

  compile(schema: unknown): ValueCheck {
    if (typeof schema === 'boolean') return (value) => payFor(schema) || noteProblem('false schema', {}, value, {})
    const fields = schema as Fields
    let check = this.#checks.get(fields)
    if (check) return check
    // A schema may refer to itself.
    this.#checks.set(fields, (value, evaluated) => (check as ValueCheck)(value, evaluated))
    check = this.#compileFields(fields)
    this.#checks.set(fields, check)
    return check
  }

  #compileFields(schema: Fields): ValueCheck {
    const keywords: (readonly [string, Keyword])[] = []
    for (const [name, make] of Object.entries(keywordMakers)) {
      // Members are checked together, as are items.
      const isPresent = [name, ...(companions[name] ?? [])].some((keyword) => schema[keyword] !== undefined)
      if (isPresent) keywords.push([name, make(schema, this, name)])
    }
    const { steps, passes } = schemaCost(schema)
    const tracks = schema.unevaluatedProperties !== undefined || schema.unevaluatedItems !== undefined
    const check: ValueCheck = (value, outer) => {
      // Not a function call, because most checks do little more.
      stepBudget.left -= steps
      if (stepBudget.left < 0) throw stepBudget.spent
      if (passes > 0) chargeForWhole(value, passes)
      const evaluated = outer ?? (tracks ? new Set() : undefined)
      let accepts = true
      for (const [keyword, { check, params }] of keywords) {
        if (check(value, evaluated)) continue
        accepts = false
        if (params && checkRun.problems) noteProblem(keyword, params(value), value, schema)
        if (!checkRun.all) return false
      }
      return accepts
    }
    const anchor = schema.$dynamicAnchor
    return typeof anchor === 'string' ? this.#withAnchor(schema, anchor, check) : check
  }

  #withAnchor(schema: Fields, anchor: string, check: ValueCheck): ValueCheck {
    return (value, evaluated) => {
      if (checkRun.anchors.has(anchor)) return check(value, evaluated)
      checkRun.anchors.set(anchor, schema)
      const accepts = check(value, evaluated)
      checkRun.anchors.delete(anchor)
      return accepts
    }
  }

  compileAll(schemas: unknown): readonly ValueCheck[] {
    return (schemas as readonly unknown[]).map((schema) => this.compile(schema))
  }

  /** A check of the same value with a subschema. What it evaluated counts only if it accepts the value. */
  inPlace(schema: unknown): ValueCheck {
    const check = this.compile(schema)
    return this.#tracks ? inPlace(check) : check
  }

  allInPlace(schemas: unknown): readonly ValueCheck[] {
    return (schemas as readonly unknown[]).map((schema) => this.inPlace(schema))
  }

  compileMap(schemas: unknown): ReadonlyMap<string, ValueCheck> {
    return new Map(Object.entries((schemas ?? {}) as Fields).map(([name, schema]) => [name, this.compile(schema)]))
  }

  pattern(source: string): (text: string) => boolean {
    if (!this.#compilePattern) throw new Error('patterns are not available')
    return this.#compilePattern(source)
  }
}

function payFor(answer: boolean): boolean {
  charge(1)
  return answer
}

const inPlace =
  (check: ValueCheck): ValueCheck =>
  (value, evaluated) => {
    if (!evaluated) return check(value)
    const inner: Evaluated = new Set()
    if (!check(value, inner)) return false
    charge(inner.size)
    for (const name of inner) evaluated.add(name)
    return true
  }

/** Keywords that count the characters in a string or iterate over all members of an object. */
const wholeKeywords = new Set(
  `minLength maxLength minProperties maxProperties additionalProperties patternProperties propertyNames
  unevaluatedProperties`.split(/\s+/),
)

/** The budget steps that a subschema costs, and how many times its check iterates over the whole value. */
function schemaCost(schema: Fields): { readonly steps: number; readonly passes: number } {
  let steps = 1
  for (const [keyword, value] of Object.entries(schema)) {
    const isValue = keyword === 'enum' || keyword === 'const'
    if (isValue) steps += valuesIn(value) / 8
    else if (Array.isArray(value)) steps += value.length / 8
  }
  const compared = [schema.enum ?? [], schema.const ?? []].flat().filter(isRecord)
  const passes = Object.keys(schema).filter((keyword) => wholeKeywords.has(keyword)).length
  return { steps: Math.ceil(steps), passes: compared.length + passes }
}

/** Keywords that the maker of another one reads. */
const companions: Readonly<Record<string, readonly string[]>> = {
  items: ['prefixItems', 'additionalItems'],
  properties: ['patternProperties', 'additionalProperties'],
}

type Maker = (schema: Fields, compiler: SchemaCompiler, name: string) => Keyword

const leafKeyword =
  (test: (wanted: never) => (value: unknown) => boolean, param = 'limit'): Maker =>
  (schema, _, name) => {
    const wanted = schema[name]
    return { check: test(wanted as never), params: () => ({ [param]: wanted }) }
  }

const boundKeyword =
  (comparison: string, fits: (order: number) => boolean): Maker =>
  (schema, _, name) => {
    const limit = schema[name] as Digits
    return {
      check: (value) => !isNumeric(value) || fits(compare(value, limit)),
      params: () => ({ limit, comparison }),
    }
  }

/** What members require if they are present: other members, or that a schema accepts the whole value. */
const dependencyKeyword: Maker = (schema, compiler, keyword) =>
  every(
    Object.entries(schema[keyword] as Fields).map(([name, needed]): ValueCheck => {
      if (Array.isArray(needed)) return requires(schema, 'dependentRequired', needed, name).check
      const check = compiler.inPlace(needed)
      return (value, evaluated) => !isObject(value) || !has(value, name) || check(value, evaluated)
    }),
  )

/**
 * Creates the check for each keyword. `prepare` has validated the values. Keywords are checked in this order: what a
 * caller should fix first comes first.
 */
const keywordMakers: Readonly<Record<string, Maker>> = {
  type({ type, nullable }) {
    const names = [type, nullable === true ? 'null' : []].flat() as string[]
    const tests = names.map((name) => {
      if (!Object.hasOwn(typeChecks, name)) throw new Error(`there is no type ${name}`)
      return typeChecks[name] as ValueCheck
    })
    const [only, ...others] = tests
    const check: ValueCheck =
      only && others.length === 0 ? only : (value) => tests.length === 0 || tests.some((test) => test(value))
    return { check, params: () => ({ type: names.length === 1 ? names[0] : names }) }
  },
  multipleOf: leafKeyword(
    (step: Digits) => (value) => !isNumeric(value) || (isDigits(value) && isMultiple(value, step)),
    'multipleOf',
  ),
  maximum: boundKeyword('<=', (order) => order <= 0),
  minimum: boundKeyword('>=', (order) => order >= 0),
  exclusiveMaximum: boundKeyword('<', (order) => order < 0),
  exclusiveMinimum: boundKeyword('>', (order) => order > 0),
  maxLength: leafKeyword((max: number) => (value) => typeof value !== 'string' || !reaches(value, max + 1)),
  minLength: leafKeyword((min: number) => (value) => typeof value !== 'string' || reaches(value, min)),
  pattern: ({ pattern }, compiler) => {
    const test = compiler.pattern(pattern as string)
    return { check: (value) => typeof value !== 'string' || test(value), params: () => ({ pattern }) }
  },
  format: leafKeyword((name: string) => {
    const test = Object.hasOwn(formatTests, name) ? formatTests[name] : undefined
    return (value) => !test || typeof value !== 'string' || test(value)
  }, 'format'),
  $ref: ({ $ref }, compiler) => ({ check: compiler.inPlace($ref) }),
  $dynamicRef({ $dynamicRef }, compiler) {
    const target = compiler.compile($dynamicRef)
    const anchor = isRecord($dynamicRef) ? $dynamicRef.$dynamicAnchor : undefined
    return {
      check: inPlace((value, evaluated) => {
        const dynamic = checkRun.anchors.get(anchor as string)
        return (dynamic ? compiler.compile(dynamic) : target)(value, evaluated)
      }),
    }
  },
  const: ({ const: value }) => ({ check: isOneOf([value]), params: () => ({ allowedValue: value }) }),
  enum: ({ enum: values }) => ({ check: isOneOf(values as unknown[]), params: () => ({ allowedValues: values }) }),
  not({ not }, compiler) {
    const check = compiler.compile(not)
    return { check: (value) => !quietly(() => check(value)), params: () => ({}) }
  },
  anyOf({ anyOf }, compiler) {
    const checks = compiler.allInPlace(anyOf)
    return { check: (value, evaluated) => countMatches(checks, value, evaluated, 1) > 0, params: () => ({}) }
  },
  oneOf({ oneOf }, compiler) {
    const checks = compiler.allInPlace(oneOf)
    return {
      check: (value, evaluated) => countMatches(checks, value, evaluated, 2) === 1,
      params: (value) => ({ passingSchemas: quietly(() => countMatches(checks, value, undefined, 2)) > 1 }),
    }
  },
  allOf: ({ allOf }, compiler) => every(compiler.allInPlace(allOf)),
  if(schema, compiler) {
    const condition = compiler.inPlace(schema.if)
    const then = compiler.inPlace(schema.then ?? true)
    const otherwise = compiler.inPlace(schema.else ?? true)
    return {
      check: (value, evaluated) => (quietly(() => condition(value, evaluated)) ? then : otherwise)(value, evaluated),
    }
  },
  maxItems: leafKeyword((max: number) => (value) => !Array.isArray(value) || value.length <= max),
  minItems: leafKeyword((min: number) => (value) => !Array.isArray(value) || value.length >= min),
  uniqueItems: leafKeyword((wanted: boolean) => (value) => {
    return !wanted || !Array.isArray(value) || new Set(value.map(canonicalText)).size === value.length
  }),
  contains({ contains, minContains = 1, maxContains = Number.POSITIVE_INFINITY }, compiler) {
    const check = compiler.compile(contains)
    return {
      check(value, evaluated) {
        if (!Array.isArray(value)) return true
        const found = quietly(() => [...value.keys()].filter((index) => check(value[index])))
        for (const index of found) evaluated?.add(index)
        return found.length >= (minContains as number) && found.length <= (maxContains as number)
      },
      params: () => ({}),
    }
  },
  items({ items, prefixItems, additionalItems }, compiler) {
    const isList = Array.isArray(items)
    const first = compiler.compileAll(isList ? items : (prefixItems ?? []))
    const others = isList ? additionalItems : items
    const rest = others === undefined ? undefined : compiler.compile(others)
    return {
      check(value, evaluated) {
        if (!Array.isArray(value)) return true
        let accepts = true
        for (let index = 0; index < value.length; index++) {
          const check = first[index] ?? rest
          if (!check) break
          evaluated?.add(index)
          if (checkRun.problems ? checkMember(check, value[index], `${index}`) : check(value[index])) continue
          accepts = false
          if (!checkRun.all) return false
        }
        return accepts
      },
    }
  },
  maxProperties: leafKeyword((max: number) => (value) => !isObject(value) || memberNames(value).length <= max),
  minProperties: leafKeyword((min: number) => (value) => !isObject(value) || memberNames(value).length >= min),
  required: (schema) => requires(schema, 'required', schema.required as string[]),
  dependentRequired: dependencyKeyword,
  propertyNames({ propertyNames }, compiler) {
    const check = compiler.compile(propertyNames)
    return {
      check(value) {
        if (!isObject(value)) return true
        const wrong = memberNames(value).find((name) => !check(name))
        return wrong === undefined || noteProblem('propertyNames', { propertyName: wrong }, value, {})
      },
    }
  },
  dependencies: dependencyKeyword,
  properties({ properties, patternProperties, additionalProperties }, compiler) {
    const known = compiler.compileMap(properties)
    const patterns = [...compiler.compileMap(patternProperties)].map(
      ([source, check]) => [compiler.pattern(source), check] as const,
    )
    const others = additionalProperties === undefined ? undefined : compiler.compile(additionalProperties)
    const schema = { properties }
    const checkOther = (name: string, value: unknown, evaluated: Evaluated | undefined): boolean => {
      const matching = patterns.filter(([matches]) => matches(name))
      const checks = matching.map(([, check]) => check)
      if (matching.length === 0 && !known.has(name)) {
        if (!others) return true
        if (additionalProperties === false) {
          return noteProblem('additionalProperties', { additionalProperty: name }, value, schema)
        }
        checks.push(others)
      }
      evaluated?.add(name)
      return checks.map((check) => checkMember(check, value, name)).every(Boolean)
    }
    return {
      check(value, evaluated) {
        if (!isObject(value)) return true
        const names = Object.keys(value)
        charge(names.length * stepsPerMember)
        let accepts = true
        for (const name of names) {
          const member = value[name]
          if (member === undefined) continue
          const check = known.get(name)
          if (check) evaluated?.add(name)
          const isAccepted = !check || (checkRun.problems ? checkMember(check, member, name) : check(member))
          const needsMore = (!check && others !== undefined) || patterns.length > 0
          if (isAccepted && (!needsMore || checkOther(name, member, evaluated))) continue
          accepts = false
          if (!checkRun.all) return false
        }
        return accepts
      },
    }
  },
  dependentSchemas: dependencyKeyword,
  unevaluatedItems({ unevaluatedItems }, compiler) {
    const check = compiler.compile(unevaluatedItems)
    return {
      check(value, evaluated) {
        if (!Array.isArray(value)) return true
        const left = [...value.keys()].filter((index) => !evaluated?.has(index))
        const accepts = left.every((index) => quietly(() => check(value[index])))
        if (accepts) for (const index of left) evaluated?.add(index)
        return accepts
      },
      params: () => ({}),
    }
  },
  unevaluatedProperties(schema, compiler) {
    const check = compiler.compile(schema.unevaluatedProperties)
    return {
      check(value, evaluated) {
        if (!isObject(value)) return true
        const wrong = memberNames(value).find((name) => !evaluated?.has(name) && !quietly(() => check(value[name])))
        if (wrong !== undefined) {
          return noteProblem('unevaluatedProperties', { unevaluatedProperty: wrong }, value, schema)
        }
        for (const name of Object.keys(value)) evaluated?.add(name)
        return true
      },
    }
  },
}

const isObject = (value: unknown): value is Fields => isRecord(value) && !(value instanceof ExactNumber)

/** Whether it is a number, even one that no double can hold. */
const isNumeric = (value: unknown): value is Digits => typeof value === 'number' || value instanceof ExactNumber

const typeChecks: Readonly<Record<string, ValueCheck>> = {
  string: (value) => typeof value === 'string',
  number: isDigits,
  integer: isWhole,
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
  array: Array.isArray,
  object: isObject,
}

const every = (checks: readonly ValueCheck[]): Keyword => ({
  check(value, evaluated) {
    let accepts = true
    for (const check of checks) {
      if (check(value, evaluated)) continue
      accepts = false
      if (!checkRun.all) return false
    }
    return accepts
  },
})

/** How many alternatives accept a value. Stops at `enough`, unless all evaluated members must be known. */
function countMatches(
  checks: readonly ValueCheck[],
  value: unknown,
  evaluated: Evaluated | undefined,
  enough: number,
): number {
  const known = checkRun.problems?.length
  let count = 0
  for (const check of checks) {
    if (check(value, evaluated)) count++
    if (count >= enough && (!evaluated || enough > 1)) break
  }
  // The problems of other alternatives do not matter if one accepts the value.
  if (count > 0 && checkRun.problems && known !== undefined) checkRun.problems.length = known
  return count
}

function requires(schema: Fields, keyword: string, names: readonly string[], property?: string): Keyword {
  return {
    check(value) {
      if (!isObject(value) || (property !== undefined && !has(value, property))) return true
      let accepts = true
      for (const missingProperty of names) {
        if (has(value, missingProperty)) continue
        accepts = false
        noteProblem(keyword, { missingProperty, property }, value, schema)
        if (!checkRun.all) return false
      }
      return accepts
    },
  }
}

const has = (value: Fields, name: string): boolean => Object.hasOwn(value, name) && value[name] !== undefined

const memberNames = (value: Fields): string[] => Object.keys(value).filter((name) => value[name] !== undefined)

const isCompound = (value: unknown): boolean => typeof value === 'object' && value !== null

function isOneOf(values: readonly unknown[]): ValueCheck {
  const simple = new Set(values.filter((value) => !isCompound(value)))
  // The size of schemas is limited.
  stepBudget.left = stepsPerCheck
  const compound = new Set(values.filter(isCompound).map(canonicalText))
  return (value) => (isCompound(value) ? compound.size > 0 && compound.has(canonicalText(value)) : simple.has(value))
}

/** Whether a string has at least this many code points. */
function reaches(text: string, min: number): boolean {
  if (text.length < min || text.length >= 2 * min) return text.length >= min
  let length = 0
  for (let at = 0; at < text.length; length++) at += (text.codePointAt(at) as number) > 0xffff ? 2 : 1
  return length >= min
}
