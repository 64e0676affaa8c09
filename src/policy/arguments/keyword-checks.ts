import { isIPv4, isIPv6 } from 'node:net'
import { isRecord } from '../../lib/is-record.ts'
import { type Cost, costKeyword } from './prepare.ts'

export type Fits = (value: unknown) => boolean

type Fields = Readonly<Record<string, unknown>>

/**
 * A check for prepared schemas that use only simple keywords, as most tools do; undefined for any other schema. It is
 * available immediately, whereas the compiler takes 30 ms to load and about 3 MB of memory. It may reject what the
 * compiler accepts, but never accepts what the compiler rejects.
 */
export function plainCheck(schema: unknown): Fits | undefined {
  if (typeof schema === 'boolean') return () => paid(schema)
  const { [costKeyword]: cost, ...said } = schema as Fields
  const checks: Fits[] = []
  for (const [keyword, value] of Object.entries(said)) {
    const check = Object.hasOwn(keywords, keyword) ? keywords[keyword]?.(value as never, said) : undefined
    if (check === undefined) return undefined
    checks.push(check)
  }
  const { steps, passes } = cost as Cost
  return (value) => {
    charge(steps)
    if (passes > 0) chargeForWhole(value, passes)
    for (const check of checks) if (!check(value)) return false
    return true
  }
}

/** Creates the check for each keyword; undefined if its value is not simple. `prepare` has validated the values. */
const keywords: Readonly<Record<string, (value: never, schema: Fields) => Fits | undefined>> = {
  type: (names: string | readonly string[]) => {
    const kinds = [names].flat().map((name) => (Object.hasOwn(types, name) ? types[name] : undefined))
    return kinds.length === 0 || kinds.includes(undefined) ? undefined : oneOf(kinds as Fits[])
  },
  enum: (values: readonly unknown[]) => {
    const allowed = new Set(values)
    return values.some(isCompound) ? undefined : (value) => allowed.has(value)
  },
  const: (wanted: unknown) => (isCompound(wanted) ? undefined : (value) => value === wanted),
  minimum: (least: number) => (value) => typeof value !== 'number' || value >= least,
  maximum: (most: number) => (value) => typeof value !== 'number' || value <= most,
  exclusiveMinimum: (bound: number) => (value) => typeof value !== 'number' || value > bound,
  exclusiveMaximum: (bound: number) => (value) => typeof value !== 'number' || value < bound,
  minLength: (least: number) => (value) => typeof value !== 'string' || reaches(value, least),
  maxLength: (most: number) => (value) => typeof value !== 'string' || !reaches(value, most + 1),
  minItems: (least: number) => (value) => !Array.isArray(value) || value.length >= least,
  maxItems: (most: number) => (value) => !Array.isArray(value) || value.length <= most,
  format: (name: string) => {
    const check = Object.hasOwn(formats, name) ? formats[name] : undefined
    return check ? (value) => typeof value !== 'string' || check(value) : () => true
  },
  required: (names: readonly string[]) => (value) => !isRecord(value) || names.every((name) => has(value, name)),
  properties: (schemas: Fields, { additionalProperties }) => {
    const known = membersOf(schemas)
    // Leave schemas with members named like object methods to the compiler.
    if (known === undefined || Object.keys(schemas).some((name) => name in {})) return undefined
    const other = additionalProperties === undefined ? () => true : plainCheck(additionalProperties)
    if (other === undefined) return undefined
    return (value) => {
      if (!isRecord(value)) return true
      const names = Object.keys(value)
      charge(names.length * stepsPerMember)
      for (const name of names) if (!(known.get(name) ?? other)(value[name])) return false
      return true
    }
  },
  additionalProperties: (schema: unknown, { properties }) =>
    properties === undefined ? keywords.properties?.({} as never, { additionalProperties: schema }) : () => true,
  items: (schema: unknown) => {
    const check = Array.isArray(schema) ? undefined : plainCheck(schema)
    return check && ((value) => !Array.isArray(value) || value.every((item) => check(item)))
  },
  anyOf: (schemas: readonly unknown[]) => {
    const checks = schemas.map(plainCheck)
    return checks.includes(undefined) ? undefined : oneOf(checks as Fits[])
  },
}

const types: Readonly<Record<string, Fits>> = {
  string: (value) => typeof value === 'string',
  number: Number.isFinite,
  integer: Number.isInteger,
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
  array: Array.isArray,
  object: isRecord,
}

function paid(answer: boolean): boolean {
  charge(1)
  return answer
}

function oneOf(checks: readonly Fits[]): Fits {
  const [only, ...others] = checks
  return only && others.length === 0 ? only : (value) => checks.some((check) => check(value))
}

function membersOf(schemas: Fields): ReadonlyMap<string, Fits> | undefined {
  const made = Object.entries(schemas).map(([name, schema]) => [name, plainCheck(schema)] as const)
  return made.some(([, check]) => check === undefined) ? undefined : new Map(made as [string, Fits][])
}

const has = (value: Fields, name: string): boolean => Object.hasOwn(value, name) && value[name] !== undefined

const isCompound = (value: unknown): boolean => typeof value === 'object' && value !== null

/** Whether a string has at least this many code points. */
function reaches(text: string, least: number): boolean {
  if (text.length < least || text.length >= 2 * least) return text.length >= least
  let length = 0
  for (let at = 0; at < text.length; length++) at += (text.codePointAt(at) as number) > 0xffff ? 2 : 1
  return length >= least
}

const maxPatternText = 4096

const zone = '(z|[+-]\\d\\d(:?\\d\\d)?)?'
const clock = `\\d\\d:\\d\\d(:\\d\\d(\\.\\d+)?)?${zone}`

/**
 * The formats that are checked, but only loosely. In current JSON Schema they are annotations, and a gateway that is
 * stricter than the server would refuse working calls: many servers declare date-time and accept dates without a zone.
 */
export const formats: Readonly<Record<string, (text: string) => boolean>> = {
  'date-time': like(new RegExp(`^\\d{4}-\\d\\d-\\d\\d[t ]${clock}$`, 'i')),
  date: like(/^\d{4}-\d\d-\d\d/),
  time: like(new RegExp(`^${clock}$`, 'i')),
  email: like(/^[^\s@]+@[^\s@]+$/),
  uri: like(/^[a-z][a-z0-9+.-]*:\S*$/i),
  uuid: like(/^(urn:uuid:)?[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i),
  ipv4: isIPv4,
  ipv6: isIPv6,
}

function like(pattern: RegExp): (text: string) => boolean {
  return (text) => text.length > maxPatternText || pattern.test(text)
}

export class BudgetSpent extends Error {}

/**
 * The work that a check may still do. Schemas come from servers and arguments from callers, and a schema can make a
 * validator take exponential time. The budget guarantees that every check ends.
 */
interface Budget {
  left: number
  readonly spent: BudgetSpent
}

/** One budget is shared by all checks: they are synchronous, so only one runs at a time. */
export const budget: Budget = { left: 0, spent: new BudgetSpent('checking took too many steps') }

/** The budget for one check. A step takes 5 to 30 ns, so a check blocks the event loop for about 50 ms at most. */
export const stepsPerCheck = 2_000_000

export function charge(steps: number): void {
  budget.left -= steps
  if (budget.left < 0) throw budget.spent
}

/** How many characters are processed per step, and how many steps it takes to enumerate one member. */
const charactersPerStep = 16
const stepsPerMember = 4

/** Charges the budget for iterating over the characters or members of a value. Nested values are not included. */
export function chargeForWhole(value: unknown, times: number): void {
  if (typeof value === 'string') charge(Math.ceil(value.length / charactersPerStep) * times)
  else if (typeof value === 'object' && value !== null && !Array.isArray(value))
    charge(Object.keys(value).length * stepsPerMember * times)
}
