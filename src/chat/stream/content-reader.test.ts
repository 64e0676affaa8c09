import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import { ContentReader } from './content-reader.ts'

/** Reads a text in these pieces. */
function read(pieces: readonly string[]): readonly string[] {
  const reader = new ContentReader()
  return pieces.map((piece) => reader.push(piece))
}

/** A text cut anywhere, also inside of escapes and of pairs of surrogates. */
const chunked = (text: fc.Arbitrary<string>): fc.Arbitrary<readonly string[]> =>
  text.chain((whole) =>
    fc.array(fc.nat(whole.length), { maxLength: 12 }).map((cuts) => {
      const places = [0, ...cuts.sort((a, b) => a - b), whole.length]
      return places.slice(1).map((end, index) => whole.slice(places[index], end))
    }),
  )

/** Any text at all, lone surrogates included. */
const anyText = fc
  .array(fc.oneof(fc.integer({ min: 0, max: 0xffff }), fc.constantFrom(0xd83d, 0xde00, 0x22, 0x5c, 0x0a, 0x7f)), {
    maxLength: 30,
  })
  .map((units) => String.fromCharCode(...units))

const space = fc.constantFrom('', ' ', '\n  ', '\t\r\n')

/** A character as JSON may write it. */
const spelt = (unit: string, hard: boolean): string => {
  if (hard) return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  return unit === '/' ? '\\/' : JSON.stringify(unit).slice(1, -1)
}

const written = fc
  .tuple(anyText, fc.infiniteStream(fc.boolean()), space, space, space, space)
  .map(([text, hard, a, b, c, d]) => {
    const inner = [...Array(text.length).keys()].map((at) => spelt(text[at] as string, hard.next().value)).join('')
    return `${a}{${b}"content"${c}:${d}"${inner}"${a}}${b}`
  })

describe('the text of a streamed answer', () => {
  test('S3: the pieces add up to the result of JSON.parse', () => {
    fc.assert(
      fc.property(chunked(written), (pieces) => {
        expect(read(pieces).join('')).toBe(JSON.parse(pieces.join('')).content)
      }),
      runs(100, 5_000),
    )
  })

  test('S3: no piece ends inside a surrogate pair', () => {
    fc.assert(
      fc.property(chunked(written), (pieces) => {
        const told = read(pieces)
        const whole = told.join('')
        let length = 0
        for (const piece of told) {
          length += piece.length
          expect(isPair(whole, length)).toBe(false)
        }
      }),
    )
  })

  test('S3: the text of a broken answer is a prefix', () => {
    fc.assert(
      fc.property(written, fc.nat(80), (whole, end) => {
        expect(JSON.parse(whole).content.startsWith(read([whole.slice(0, end)]).join(''))).toBe(true)
      }),
    )
  })

  test('S3: text is streamed before the string ends', () => {
    expect(read(['{"content": "On', 'ce \\', 'u00', 'e9t', 'é"', '}'])).toEqual(['On', 'ce ', '', 'ét', 'é', ''])
  })

  test.each([
    ['prose', 'The answer is {"content": "x"}'],
    ['another key', '{"answer": "x"}'],
    ['a key that begins alike', '{"contents": "x"}'],
    ['another key first', '{"note": "a", "content": "x"}'],
    ['a number', '{"content": 42}'],
    ['a list', '[{"content": "x"}]'],
    ['an object in it', '{"content": {"text": "x"}}'],
    ['bare keys', "{content: 'x'}"],
    ['a fence', '```json\n{"content": "x"}\n```'],
    ['nothing', ''],
  ])('S3: %s streams no text', (_what, text) => {
    expect(read([...text]).join('')).toBe('')
  })

  test.each([
    ['an escape that there is not', '{"content": "C:\\d"}', 'C:'],
    ['a code that is none', '{"content": "a\\u12x4"}', 'a'],
    ['a bare line break', '{"content": "a\nb"}', 'a'],
    ['text behind its end', '{"content": "He said "hi" to me"}', 'He said '],
  ])('S3: it ends at %s', (_what, text, told) => {
    expect(read([...text]).join('')).toBe(told)
  })
})

/** Whether a place is between the two halves of a character. */
const isPair = (text: string, at: number): boolean =>
  /[\ud800-\udbff]/.test(text[at - 1] ?? '') && /[\udc00-\udfff]/.test(text[at] ?? '')
