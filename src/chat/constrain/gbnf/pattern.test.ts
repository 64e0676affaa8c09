import { isIPv4, isIPv6 } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../../../tests/fixtures/runs.ts'
import { dice } from './dice.fixture.ts'
import { readGrammar } from './grammar.fixture.ts'
import { toGrammar } from './grammar.ts'

const grammarOf = (schema: object) => readGrammar(toGrammar({ type: 'string', ...schema }))

describe('S4: a pattern becomes a grammar', () => {
  test.each([
    '^a$',
    '^[a-z][a-z0-9_-]{0,20}$',
    '^(?:\\+\\d{1,3} )?\\d{3}-\\d{4}$',
    '^#(?:[0-9a-f]{3}|[0-9A-F]{6})$',
    '^[^\\s@]+@[^\\s@]+\\.[a-z]{2,}$',
    '^v?\\d+\\.\\d+\\.\\d+(-[\\w.]+)?$',
    '^\\S+$',
    '^.{3,5}$',
    '^[\\w-]+(\\.[\\w-]+)*$',
    '^(a|b|)c?$',
    '^[\\]\\[\\\\^"-]+$',
    '^\\u00e9\\x41[\\u{1F600}-\\u{1F64F}]$',
    '^(?<year>\\d{4})$',
    '^a+?b*?$',
    '^$',
    '^[^]$',
    'needle',
    '^start',
    'end$',
    '^a|b$',
    '(^x$|^y$)',
    '^(a+)+$',
    '^(?:b*){2,3}$',
    '^(?:[a-z]+[.])+[a-z]{2,}$',
  ])('%s', (pattern) => {
    const grammar = grammarOf({ pattern, maxLength: 300 })
    const expression = new RegExp(pattern, 'u')
    fc.assert(
      fc.property(fc.stringMatching(expression), dice, (text, roll) => {
        if (isWritable(text)) expect(grammar.matches(JSON.stringify(text)), text).toBe(true)
        const sample: string = JSON.parse(grammar.sample(roll))
        expect(sample).toMatch(expression)
        expect([...sample].length).toBeLessThanOrEqual(300)
      }),
      runs(8, 40),
    )
  })
})

test('S4: ambiguous repetitions are bounded', () => {
  const words = grammarOf({ pattern: '^(?:\\w+\\s?)+$' })
  expect([words.matches('"two words"'), words.matches(`"${'long'.repeat(100)}"`)]).toEqual([true, false])
  const hosts = grammarOf({ pattern: '^(?:\\w+[.])+$' })
  expect(hosts.matches(`"${'w'.repeat(40)}.${'x'.repeat(40)}."`)).toBe(true)
})

/** Control characters without a short escape, and halves of characters, are left to other forms. */
const isWritable = (text: string): boolean => !/\\u/.test(JSON.stringify(text)) && !/[\uD800-\uDFFF]/u.test(text)

describe('S4: a format becomes a grammar', () => {
  const isDate = (text: string) => new Date(`${text}T00:00:00Z`).toISOString().startsWith(text)
  test.each<readonly [string, (text: string) => boolean, readonly string[]]>([
    ['date', isDate, ['2026-11-03', '0001-01-31']],
    ['time', (text) => !Number.isNaN(Date.parse(`2026-01-01T${text}`)), ['12:00:00Z', '23:59:59.5+02:00']],
    ['date-time', (text) => isDate(text.slice(0, 10)) && !Number.isNaN(Date.parse(text)), ['2026-11-03T12:00:00Z']],
    ['uuid', (text) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text), [crypto.randomUUID()]],
    ['ipv4', isIPv4, ['127.0.0.1', '255.255.255.255', '0.0.0.0']],
    ['ipv6', isIPv6, ['2001:db8:0:0:0:0:0:1']],
    [
      'hostname',
      (text) => /^[a-z\d]([a-z\d-]*[a-z\d])?(\.[a-z\d]([a-z\d-]*[a-z\d])?)*$/i.test(text),
      ['localhost', 'a-b.example.com'],
    ],
    ['email', (text) => /^[^\s@.][^\s@]*@[^\s@]+\.[^\s@]+$/.test(text), ['ada@example.com', 'a.b+c@x.example.org']],
    [
      'uri',
      (text) => /^[a-z][a-z\d+.-]*:[^\s"<>\\^`{|}]+$/i.test(text),
      ['https://example.com:8080/a/b?c=d#e', 'file:///etc/hosts', 'mailto:ada@example.com', 'urn:isbn:1'],
    ],
    [
      'uri-reference',
      (text) => URL.canParse(text, 'http://x.example/') || /^[a-z]/i.test(text),
      ['../a', '/b?c', '#d', 'e.html'],
    ],
    ['duration', (text) => /^P(\d+[YMWD])?(T?\d+[HMSYMWD])?/.test(text), ['P3D', 'PT5M', 'P1DT2H']],
    ['json-pointer', (text) => text === '' || text.startsWith('/'), ['', '/a/0']],
  ])('%s', (format, isRight, examples) => {
    const grammar = grammarOf({ format })
    for (const text of examples) expect(grammar.matches(JSON.stringify(text)), text).toBe(true)
    expect(grammar.matches('"not one, surely"')).toBe(false)
    fc.assert(
      fc.property(dice, (roll) => {
        const text: string = JSON.parse(grammar.sample(roll))
        expect(isRight(text), text).toBe(true)
      }),
      runs(8, 40),
    )
  })
})
