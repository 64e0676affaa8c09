import type { Expression, Range } from './expression.ts'

/** Writes a piece of a grammar down as GBNF. */
export function print(expression: Expression): string {
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

/** What a repetition would otherwise apply to the last part of. A text counts as one part. */
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

const printRange = ([from, to]: Range): string => (from === to ? inSet(from) : `${inSet(from)}-${inSet(to)}`)

/** Only letters and digits are sure to stand for themselves: readers differ in how they take the rest. */
const inSet = (point: number): string =>
  /[A-Za-z0-9]/.test(String.fromCodePoint(point)) ? String.fromCodePoint(point) : escaped(point)

const isPlain = (point: number): boolean => point >= 0x20 && point < 0x7f

function escaped(point: number): string {
  const hex = (length: number): string => point.toString(16).toUpperCase().padStart(length, '0')
  if (point < 0x100) return `\\x${hex(2)}`
  return point < 0x10000 ? `\\u${hex(4)}` : `\\U${hex(8)}`
}
