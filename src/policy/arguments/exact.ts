import type { Ajv, FuncKeywordDefinition } from 'ajv'
import { _, type Code } from 'ajv/dist/compile/codegen/index.js'
import { type Decimal, decimalForm, decimalOf, ExactNumber } from '../../json/exact-number.ts'
import { isRecord } from '../../lib/is-record.ts'
import { budget, charge, chargeForWhole, stepsPerCheck } from './keyword-checks.ts'
import { wholeKeyword } from './prepare.ts'

/*
 * Compares numbers by their original digits. Arguments are forwarded unchanged, so the check must not use the double to
 * which a number rounds (V5). This comparison is used only if the arguments or the schema contain a number that a
 * double cannot represent.
 */

type Digits = number | ExactNumber
type Where = { readonly parentData: unknown; readonly parentDataProperty: unknown }

/** The exact form of each object and list in the arguments. Checks are synchronous, so one map is enough. */
let twins = new Map<object, object>()

/** Runs a check in which the exact keywords see `exact` in place of `value`. */
export function withExact<T>(value: unknown, exact: unknown, check: () => T): T {
  twins = new Map()
  pair(value, exact)
  try {
    return check()
  } finally {
    twins = new Map()
  }
}

function pair(value: unknown, exact: unknown): void {
  if (typeof value !== 'object' || value === null || typeof exact !== 'object' || exact === null) return
  twins.set(value, exact)
  for (const key of Object.keys(value))
    pair((value as Record<string, unknown>)[key], (exact as Record<string, unknown>)[key])
}

/** Max digits per number. Longer numbers fail: division takes quadratic time, and schemas can request it repeatedly. */
const maxDigits = 1_000

/** The exact form of the value that a keyword checks. Throws if the value is a number with too many digits. */
function exactOf(data: unknown, { parentData, parentDataProperty }: Where): unknown {
  if (typeof data === 'object' && data !== null) return twins.get(data) ?? data
  if (typeof data !== 'number') return data
  const holder = twins.get(parentData as object) as Record<string, unknown> | undefined
  const exact = holder?.[parentDataProperty as string] ?? data
  if (exact instanceof ExactNumber && exact.source.length > maxDigits) throw new Error('a number has too many digits')
  return exact
}

export function addExactKeywords(compiler: Ajv): void {
  for (const definition of definitions) {
    compiler.removeKeyword(definition.keyword as string)
    compiler.addKeyword(definition)
  }
}

const bound = (keyword: string, comparison: string, fits: (order: number) => boolean): FuncKeywordDefinition => ({
  keyword,
  error: { message: keyword, params: ({ schemaCode }) => _`{limit: ${schemaCode as Code}, comparison: ${comparison}}` },
  compile: (limit: Digits) => (data, where) =>
    typeof data !== 'number' || fits(compare(exactOf(data, where as Where) as Digits, limit)),
})

/**
 * Creates a check that data equals one of the given values. If none of the values is an object or a list, the check
 * rejects objects and lists without comparing them.
 */
const oneOf = (values: readonly unknown[]): ((data: unknown, where?: unknown) => boolean) => {
  // Schemas are compiled outside of any check, so set the budget here. The size of schemas is already limited.
  budget.left = stepsPerCheck
  const allowed = new Set(values.map(canonical))
  const compound = values.some((value) => (isRecord(value) && !(value instanceof ExactNumber)) || Array.isArray(value))
  return (data, where) =>
    (compound || typeof data !== 'object' || data === null) && allowed.has(canonical(exactOf(data, where as Where)))
}

const definitions: readonly FuncKeywordDefinition[] = [
  bound('minimum', '>=', (order) => order >= 0),
  bound('maximum', '<=', (order) => order <= 0),
  bound('exclusiveMinimum', '>', (order) => order > 0),
  bound('exclusiveMaximum', '<', (order) => order < 0),
  {
    keyword: 'multipleOf',
    error: { message: 'multipleOf', params: ({ schemaCode }) => _`{multipleOf: ${schemaCode as Code}}` },
    compile: (step: Digits) => (data, where) =>
      typeof data !== 'number' || isMultiple(exactOf(data, where as Where) as Digits, step),
  },
  {
    keyword: wholeKeyword,
    error: { message: 'type', params: _`{type: 'integer'}` },
    validate: (_wanted: boolean, data: unknown, _schema: unknown, where: unknown) =>
      typeof data !== 'number' || decimal(exactOf(data, where as Where) as Digits).power >= 0,
  },
  {
    keyword: 'const',
    error: { message: 'const', params: ({ schemaCode }) => _`{allowedValue: ${schemaCode as Code}}` },
    compile: (value: unknown) => oneOf([value]),
  },
  {
    keyword: 'enum',
    error: { message: 'enum', params: ({ schemaCode }) => _`{allowedValues: ${schemaCode as Code}}` },
    compile: oneOf,
  },
  {
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    errors: false,
    validate(wanted: boolean, items: readonly unknown[], _schema: unknown, where: unknown) {
      if (!wanted) return true
      const spelled = new Set((exactOf(items, where as Where) as readonly unknown[]).map(canonical))
      return spelled.size === items.length
    },
  },
]

/** The decimal form of a number. Numbers whose shortest decimal form is not exact are `ExactNumber`s. */
function decimal(number: Digits): Decimal {
  const source = number instanceof ExactNumber ? number.source : `${number}`
  chargeForWhole(source, 1)
  return decimalOf(source) ?? { negative: false, digits: '', power: 0 }
}

/** Compares two numbers like a sort comparator. Does no arithmetic, so it is fast however many digits there are. */
export function compare(one: Digits, other: Digits): number {
  const a = decimal(one)
  const b = decimal(other)
  const side = ({ negative, digits }: Decimal) => (digits === '' ? 0 : negative ? -1 : 1)
  if (side(a) !== side(b)) return side(a) - side(b)
  const size = ({ digits, power }: Decimal) => digits.length + power
  const larger = size(a) === size(b) ? Number(a.digits > b.digits) - Number(a.digits < b.digits) : size(a) - size(b)
  return a.negative ? 0 - larger : larger
}

/** Whether a number is a multiple of a step. Throws if the numbers are too long to divide. */
export function isMultiple(number: Digits, step: Digits): boolean {
  const a = decimal(number)
  const b = decimal(step)
  if (a.digits === '') return true
  const power = Math.min(a.power, b.power)
  const scaled = ({ digits, power: own }: Decimal): bigint => {
    if (digits.length + own - power > maxDigits) throw new Error('a number has too many digits to divide')
    return BigInt(digits) * 10n ** BigInt(own - power)
  }
  charge(maxDigits)
  return scaled(a) % scaled(b) === 0n
}

/** Whether all items are different. Takes linear time: pairwise comparison would take minutes for long lists. */
export function allDifferent(items: readonly unknown[]): boolean {
  const seen = new Set<string>()
  for (const item of items) {
    const key = canonical(item)
    if (seen.has(key)) return false
    seen.add(key)
  }
  return true
}

/** A string that is equal for equal values, whatever the order of their members. */
function canonical(value: unknown): string {
  charge(1)
  const text = spelled(value)
  chargeForWhole(text, 1)
  return text
}

function spelled(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (value instanceof ExactNumber) return decimalForm(value.source)
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join()}}`
}
