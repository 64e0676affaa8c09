import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../../tests/fixtures/any-character.ts'
import { expectCpuBelow } from '../../../tests/fixtures/cpu-time.ts'
import { runs } from '../../../tests/fixtures/runs.ts'
import { createConceal, redacted } from './conceal.ts'

/** Secrets of every kind: keys, passwords with marks and spaces, words of other alphabets. */
const secret = fc
  .oneof(
    fc.stringMatching(/^[A-Za-z0-9_-]{6,60}$/),
    fc.stringMatching(/^[!-~]{6,40}$/),
    fc.stringMatching(/^[!-~][ -~]{4,40}[!-~]$/),
    fc.string({ unit: 'grapheme', minLength: 6, maxLength: 30 }),
  )
  .filter((text) => text.trim() === text && text.length >= 6 && !/[\r\n]/.test(text))

const quoted = (text: string) => JSON.stringify(text).slice(1, -1)
const units = (text: string, write: (unit: number) => string) =>
  Array.from({ length: text.length }, (_, index) => write(text.charCodeAt(index))).join('')
const everyByte = (text: string, upper: boolean) =>
  [...Buffer.from(text)]
    .map((byte) => `%${byte.toString(16).padStart(2, '0')}`)
    .map((code) => (upper ? code.toUpperCase() : code))
    .join('')
const form = (text: string) => new URLSearchParams([['', text]]).toString().slice(1)

const spellings: Record<string, (text: string) => string> = {
  raw: (text) => text,
  'percent-encoded': encodeURIComponent,
  'percent-encoded as in a form': form,
  'percent-encoded in lower case': (text) => encodeURIComponent(text).replace(/%../g, (code) => code.toLowerCase()),
  'percent-encoded throughout': (text) => everyByte(text, true),
  'percent-encoded twice': (text) => encodeURIComponent(encodeURIComponent(text)),
  'JSON-escaped': quoted,
  'JSON-escaped twice': (text) => quoted(quoted(text)),
  'JSON-escaped to ASCII': (text) => units(text, (unit) => `\\u${unit.toString(16).padStart(4, '0')}`),
  'JSON-escaped, then percent-encoded': (text) => encodeURIComponent(quoted(text)),
  hex: (text) => Buffer.from(text).toString('hex'),
  'hex in upper case': (text) => Buffer.from(text).toString('hex').toUpperCase(),
}

/** Around it stands what no spelling of a secret begins or ends with. */
const around = fc.constantFrom('', ' ', '«', '» ', ' ja, ', '\u4e2d', '\t')

describe('B6: known secrets', () => {
  test.each(Object.entries(spellings))('%s: nothing of a secret survives, and everything else does', (_, spell) => {
    fc.assert(
      fc.property(secret, around, around, fc.array(secret, { maxLength: 5 }), (hidden, before, after, others) => {
        const conceal = createConceal([...others, hidden])
        const honest = createConceal(others)
        fc.pre(honest(before + after) === before + after && honest(spell(hidden)) === spell(hidden))
        expect(conceal(before + spell(hidden) + after)).toBe(before + redacted + after)
      }),
      runs(20, 5_000),
    )
  })

  test('base64 and base64url: embedded anywhere in anything, no bit of a secret survives', () => {
    const bytes = fc.uint8Array({ maxLength: 12 }).map((array) => Buffer.from(array))
    fc.assert(
      fc.property(
        secret,
        bytes,
        bytes,
        fc.constantFrom('base64' as const, 'base64url' as const),
        (hidden, a, b, kind) => {
          const whole = Buffer.concat([a, Buffer.from(hidden), b])
          fc.pre(whole.indexOf(hidden) === a.length && whole.lastIndexOf(hidden) === a.length)
          // A byte beside it may be, or share its bits with, the backslash of its JSON form: then it goes, too.
          const slack = quoted(hidden) === hidden ? 1 : 3
          const text = whole.toString(kind)
          const shown = createConceal([hidden])(text)
          const [before = '', after = '', ...rest] = shown.split(redacted)
          expect(rest).toEqual([])
          expect(text.startsWith(before) && text.endsWith(after)).toBe(true)
          // Only characters that are wholly of what stands around it, and nearly all of those.
          const room = Math.floor((a.length * 8) / 6)
          expect(before.length).toBeLessThanOrEqual(room)
          expect(before.length).toBeGreaterThanOrEqual(room - slack)
          const behind = text.replace(/=+$/, '').length - Math.ceil(((a.length + Buffer.byteLength(hidden)) * 8) / 6)
          expect(after.replace(/=+$/, '').length).toBeLessThanOrEqual(behind)
          expect(after.replace(/=+$/, '').length).toBeGreaterThanOrEqual(behind - slack)
        },
      ),
      runs(120, 20_000),
    )
  })

  test('base64 that is wrapped into lines, as mail does, also inside JSON', () => {
    const hidden = 'hunter22-and-some-more-of-it'
    const conceal = createConceal([hidden])
    for (const width of [64, 76]) {
      for (let ahead = 0; ahead < 80; ahead++) {
        const body = Buffer.from(`${'.'.repeat(ahead)}${hidden}${'.'.repeat(90)}`).toString('base64')
        const wrapped = body.replace(new RegExp(`.{${width}}`, 'g'), '$&\r\n')
        for (const text of [wrapped, JSON.stringify(wrapped)]) {
          const plain = conceal(text).replace(/\\r\\n|[\r\n"]/g, '')
          expect(plain).toContain(redacted)
          expect(Buffer.from(plain.replace(redacted, ''), 'base64').toString('latin1')).not.toMatch(/[a-z]{3}/)
        }
      }
    }
  })

  test('base64 of a text that holds the secret in an escaped form', () => {
    const hidden = 'p"ss w/rd&1'
    const conceal = createConceal([hidden])
    for (const text of [JSON.stringify({ user: 'me', password: hidden }), `q=${encodeURIComponent(hidden)}`]) {
      const shown = conceal(Buffer.from(text).toString('base64'))
      expect(shown).toContain(redacted)
      const rest = Buffer.from(shown.replace(redacted, ''), 'base64').toString()
      expect(rest).not.toMatch(/ss |ss%|rd&|rd%/)
    }
  })

  test('several, overlapping and repeated secrets leave one mark for each stretch', () => {
    const conceal = createConceal(['abcdef', 'defghi', 'abcdefghijkl', 'xyzxyz'])
    expect(conceal('1 abcdefghi 2 abcdefghijkl 3 abcdefabcdef 4 xyzxyzxyz 5')).toBe(
      `1 ${redacted} 2 ${redacted} 3 ${redacted} 4 ${redacted} 5`,
    )
    expect(conceal('abcde fghijk')).toBe('abcde fghijk')
  })

  test('a key of several lines is found line by line, and a very long one piece by piece', () => {
    const lines = Array.from({ length: 20 }, (_, number) => `${'MIIEvQIBADANBgkqhkiG9w0BAQE'.repeat(2)}${number + 10}`)
    const pem = `-----BEGIN X-----\n${lines.join('\n')}\n-----END X-----\n`
    const conceal = createConceal([pem])
    expect(conceal(`of it: ${lines[7]}!`)).toBe(`of it: ${redacted}!`)
    expect(conceal(`{"key":${JSON.stringify(pem)}}`)).toBe(`{"key":"${redacted}\\n"}`)
    const long = Array.from({ length: 3000 }, (_, index) => ((index * 7919) % 36).toString(36)).join('')
    expect(createConceal([long])(long.slice(0, 1500)).length).toBeLessThan(520)
    expect(createConceal([long])(long)).toBe(redacted)
  })

  test('secrets of fewer than six characters are not redacted: that would redact everything', () => {
    expect(createConceal(['main', '12345', ''])('main 12345')).toBe('main 12345')
  })

  test('texts without secrets are unchanged', () => {
    const conceal = createConceal(['correct horse battery', 'hunter22', 'ünïcödé-pässwört'])
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter, maxLength: 200 }), (text) => {
        expect(conceal(text)).toBe(text)
      }),
    )
    for (const text of ['100%', '%zz%', '\\u12', '\\', 'C:\\users\\u00', '%E4%BD%A0+\\ud83d\\ude00', '😀 hunter'])
      expect(conceal(text)).toBe(text)
  })

  test('the time does not grow with the number of secrets, nor faster than the text', async () => {
    const secrets = Array.from({ length: 2000 }, (_, number) => `secret-${number}-${number * 7919}`)
    const conceal = createConceal(secrets)
    const hostile = 'secret-1999-'.repeat(100_000)
    await expectCpuBelow(2_000, () => expect(conceal(hostile)).toBe(hostile))
  })
})
