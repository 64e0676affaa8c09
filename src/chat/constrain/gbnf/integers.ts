import { all, any, type Expression, set, text, times } from './expression.ts'

export const digit = set([[0x30, 0x39]])
const leading = set([[0x31, 0x39]])

/** Whole numbers beyond this are no longer told apart by everybody who reads JSON. */
const largest = 999_999_999_999_999

/** The whole numbers from one to another, both included; `undefined` where there is none. */
export function integersBetween(min: number, max: number): Expression | undefined {
  const low = Math.max(min, -largest)
  const high = Math.min(max, largest)
  if (low > high) return undefined
  const negative = low < 0 ? naturalsBetween(Math.max(1, -high), -low) : undefined
  const natural = high >= 0 ? naturalsBetween(Math.max(0, low), high) : undefined
  return any(natural, negative && all(text('-'), negative))
}

/** The same for numbers without a sign. */
export function naturalsBetween(min: number, max: number): Expression | undefined {
  if (min > max) return undefined
  const options: Expression[] = []
  const lengths = { from: String(min).length, to: String(max).length }
  for (let length = lengths.from; length <= lengths.to; length++) {
    const smallest = length === 1 ? 0 : 10 ** (length - 1)
    const from = Math.max(min, smallest)
    const to = Math.min(max, 10 ** length - 1)
    let end = length
    while (from === smallest && end < lengths.to && 10 ** (end + 1) - 1 <= max) end++
    if (from === smallest && length > 1 && end > length) {
      options.push(all(leading, times(digit, length - 1, end - 1)))
      length = end
    } else options.push(sameLength(String(from), String(to)))
  }
  return any(...options)
}

/** Digits between two lists of digits of the same length. */
function sameLength(low: string, high: string): Expression {
  if (/^0*$/.test(low) && /^9*$/.test(high)) return times(digit, low.length, low.length)
  const [first, last] = [Number(low[0]), Number(high[0])]
  const [lowRest, highRest] = [low.slice(1), high.slice(1)]
  if (first === last) return all(text(String(first)), sameLength(lowRest, highRest))
  const options: Expression[] = []
  let [from, to] = [first, last]
  if (!/^0*$/.test(lowRest)) {
    options.push(all(text(String(from++)), sameLength(lowRest, highRest.replace(/./g, '9'))))
  }
  const top = /^9*$/.test(highRest)
    ? undefined
    : all(text(String(to--)), sameLength(lowRest.replace(/./g, '0'), highRest))
  if (from <= to) options.push(all(set([[0x30 + from, 0x30 + to]]), times(digit, lowRest.length, lowRest.length)))
  return any(...options, top) as Expression
}
