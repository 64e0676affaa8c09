import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { expectCpuBelow } from '../../../tests/fixtures/cpu-time.ts'
import { Json } from '../../json/json.ts'
import { ExactNumber, parseExactly } from '../../json/parse-json.ts'
import { stepBudget, stepsPerCheck } from './check-run.ts'
import { type Fields, openValidator } from './validator.fixture.ts'
import { compare, isMultiple } from './values.ts'

/** Whether arguments, as text, fit a schema, as text: both with all their digits. */
async function fits(schema: string, args: string): Promise<boolean> {
  const { validate } = openValidator()
  const given = Json.raw<Fields>(Buffer.from(args))
  try {
    await validate(parseExactly(schema) as Fields, given.value, 'ids.get', given.exact)
    return true
  } catch (error) {
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENTS' })
    return false
  }
}

const ofId = (keywords: string) => `{"type":"object","properties":{"id":{${keywords}}}}`

describe('V5: numbers that a double would round are judged by their digits', () => {
  test.each([
    ['"maximum":9007199254740992', '9007199254740993', false],
    ['"maximum":9007199254740993', '9007199254740993', true],
    ['"maximum":9007199254740993', '9007199254740994', false],
    ['"maximum":9223372036854775807', '9223372036854775807', true],
    ['"maximum":9223372036854775807', '9223372036854775808', false],
    ['"maximum":5', '1e400', false],
    ['"minimum":-9007199254740992', '-9007199254740993', false],
    ['"minimum":9007199254740993', '9007199254740992', false],
    ['"exclusiveMaximum":9007199254740993', '9007199254740993', false],
    ['"exclusiveMaximum":9007199254740994', '9007199254740993', true],
    ['"exclusiveMinimum":9007199254740992', '9007199254740993', true],
    ['"const":9007199254740992', '9007199254740993', false],
    ['"const":9007199254740993', '9007199254740993', true],
    ['"const":9007199254740993', '9007199254740992', false],
    ['"const":9007199254740993', '9007199254740993.0', true],
    ['"const":{"a":[9007199254740993]}', '{"a":[9007199254740993]}', true],
    ['"const":{"a":[9007199254740993]}', '{"a":[9007199254740992]}', false],
    ['"enum":["x",9007199254740992]', '9007199254740993', false],
    ['"enum":["x",9007199254740993]', '9007199254740993', true],
    ['"enum":["x",9007199254740993]', '"x"', true],
    ['"enum":[9007199254740993]', '{}', false],
    ['"not":{"const":9007199254740992}', '9007199254740993', true],
    ['"multipleOf":2', '9007199254740993', false],
    ['"multipleOf":3', '9007199254740993', true],
    ['"multipleOf":0.5', '9007199254740993.5', true],
    ['"type":"integer"', '9007199254740993', true],
    ['"type":["integer","null"]', '9007199254740993.5', false],
    ['"type":"number"', '9007199254740993.5', true],
    ['"type":"integer"', '1.00000000000000000001', false],
    ['"uniqueItems":true', '[9007199254740992,9007199254740993]', true],
    ['"uniqueItems":true', '[9007199254740993,9007199254740993.0]', false],
    ['"items":{"anyOf":[{"type":"string"},{"maximum":9007199254740992}]}', '[1,"a",9007199254740993]', false],
  ])('{%s} with %s: %s', async (keywords, id, expected) => {
    expect(await fits(ofId(keywords), `{"id":${id}}`)).toBe(expected)
  })

  test('a check behind a reference is as exact, and null for an optional value is still left to the server', async () => {
    const schema = (most: string) =>
      `{"$defs":{"id":{"maximum":${most}}},"properties":{"id":{"$ref":"#/$defs/id"},"b":{"type":"string"}}}`
    expect(await fits(schema('9007199254740992'), '{"id":9007199254740993}')).toBe(false)
    expect(await fits(schema('9007199254740992'), '{"id":9007199254740992.0,"b":null}')).toBe(true)
    expect(await fits(schema('9007199254740993'), '{"id":9007199254740993,"b":null}')).toBe(true)
    expect(await fits(schema('9007199254740993'), '{"id":9007199254740994,"b":null}')).toBe(false)
  })

  test('the refusal names the bound with all its digits', async () => {
    const { validate } = openValidator()
    const schema = parseExactly(ofId('"maximum":9223372036854775807')) as Fields
    const given = Json.raw<Fields>(Buffer.from('{"id":9223372036854775808}'))
    await expect((async () => validate(schema, given.value, 'ids.get', given.exact))()).rejects.toThrow(
      '9223372036854775807',
    )
  })

  test('any two whole numbers compare and divide as they do by arithmetic', () => {
    const number = fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n })
    const factor = fc.bigInt({ min: 1n, max: 10n ** 20n })
    fc.assert(
      fc.property(number, number, factor, (a, b, step) => {
        stepBudget.left = stepsPerCheck
        const of = (value: bigint) => new ExactNumber(`${value}`)
        expect(Math.sign(compare(of(a), of(b)))).toBe(a < b ? -1 : a > b ? 1 : 0)
        expect(compare(new ExactNumber(`${a}00e-2`), of(a))).toBeCloseTo(0)
        expect(isMultiple(of(a * step), of(step))).toBe(true)
        expect(isMultiple(of(a), of(step))).toBe(a % step === 0n)
      }),
    )
  })

  test('security: numbers with millions of digits, or a huge exponent, are refused at once', () => {
    const digits = `7${'0'.repeat(1_000_000)}7`
    const many = Array(100).fill('{"maximum":1}').join()
    return expectCpuBelow(2_000, async () => {
      expect(await fits(ofId(`"anyOf":[${many}]`), `{"id":${digits}}`)).toBe(false)
      expect(await fits(ofId('"type":"string"'), `{"other":${digits}}`)).toBe(true)
      expect(await fits(ofId('"maximum":9007199254740993'), `{"id":${digits}}`)).toBe(false)
      expect(await fits(ofId('"multipleOf":7'), `{"id":${digits}}`)).toBe(false)
      expect(await fits(ofId('"multipleOf":7'), '{"id":7e-999999999}')).toBe(false)
      expect(await fits(ofId('"multipleOf":0.5,"not":{"multipleOf":3}'), '{"id":123e-400}')).toBe(false)
    })
  })
})
