import { isIPv4, isIPv6 } from 'node:net'
import { type Decimal, decimalForm, decimalOf, ExactNumber } from '../../json/parse-json.ts'
import { charge, chargeForWhole } from './check-run.ts'

/*
 * Compares numbers by their original digits. Arguments are forwarded unchanged, so the check must not use the double to
 * which a number rounds (V5). A number that a double cannot represent is an `ExactNumber`.
 */

export type Digits = number | ExactNumber

/** Max digits per number. Longer numbers fail: division takes quadratic time, and schemas can request it repeatedly. */
const maxComparedDigits = 1_000

export const isDigits = (value: unknown): value is Digits =>
  typeof value === 'number' ? Number.isFinite(value) : value instanceof ExactNumber && Number.isFinite(toDouble(value))

export const isWhole = (value: unknown): boolean =>
  typeof value === 'number' ? Number.isInteger(value) : isDigits(value) && decimalDigits(value).power >= 0

function toDouble({ source }: ExactNumber): number {
  if (source.length > maxComparedDigits) throw new Error('a number has too many digits')
  return Number(source)
}

/** The decimal form of a number. Numbers whose shortest decimal form is not exact are `ExactNumber`s. */
function decimalDigits(number: Digits): Decimal {
  const source = number instanceof ExactNumber ? number.source : `${number}`
  chargeForWhole(source, 1)
  return decimalOf(source) ?? { negative: false, digits: '', power: 0 }
}

/** Compares two numbers like a sort comparator. Does no arithmetic, so it is fast however many digits there are. */
export function compare(one: Digits, other: Digits): number {
  if (typeof one === 'number' && typeof other === 'number') return one - other
  const a = decimalDigits(one)
  const b = decimalDigits(other)
  const side = ({ negative, digits }: Decimal) => (digits === '' ? 0 : negative ? -1 : 1)
  if (side(a) !== side(b)) return side(a) - side(b)
  const size = ({ digits, power }: Decimal) => digits.length + power
  const larger = size(a) === size(b) ? Number(a.digits > b.digits) - Number(a.digits < b.digits) : size(a) - size(b)
  return a.negative ? 0 - larger : larger
}

/** Whether a number is a multiple of a step. Throws if the numbers are too long to divide. */
export function isMultiple(number: Digits, step: Digits): boolean {
  if (Number.isSafeInteger(number) && Number.isSafeInteger(step)) return (number as number) % (step as number) === 0
  const a = decimalDigits(number)
  const b = decimalDigits(step)
  if (a.digits === '') return true
  const power = Math.min(a.power, b.power)
  const scaled = ({ digits, power: own }: Decimal): bigint => {
    if (digits.length + own - power > maxComparedDigits) throw new Error('a number has too many digits to divide')
    return BigInt(digits) * 10n ** BigInt(own - power)
  }
  charge(maxComparedDigits)
  return scaled(a) % scaled(b) === 0n
}

/** A string that is equal for equal values, whatever the order of their members. */
export function canonicalText(value: unknown): string {
  charge(1)
  const text = spellMembers(value)
  chargeForWhole(text, 1)
  return text
}

function spellMembers(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (value instanceof ExactNumber) return decimalForm(value.source)
  if (Array.isArray(value)) return `[${value.map(canonicalText).join()}]`
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalText(member)}`).join()}}`
}

/** Longer texts are not checked. */
const maxPatternText = 4096

const zone = '(z|[+-]\\d\\d(:?\\d\\d)?)?'
const clock = `\\d\\d:\\d\\d(:\\d\\d(\\.\\d+)?)?${zone}`

/**
 * The formats that are checked, but only loosely. In current JSON Schema they are annotations, and a gateway that is
 * stricter than the server would refuse working calls: many servers declare date-time and accept dates without a zone.
 */
export const formatTests: Readonly<Record<string, (text: string) => boolean>> = {
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
