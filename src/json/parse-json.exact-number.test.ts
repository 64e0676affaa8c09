import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { expectCpuBelow } from '../../tests/fixtures/cpu-time.ts'
import { Json } from './json.ts'
import { decimalForm, ExactNumber, jsonValue, parseExactly } from './parse-json.ts'

describe('V5: numbers that a double would round', () => {
  test.each(['1326954198812345679', '-9007199254740993', '0.10000000000000000555', '1e400', '123456789012345678.5e-3'])(
    '%s keeps its digits',
    (digits) => {
      const value = parseExactly(`{"a":[${digits}]}`) as { a: [ExactNumber] }
      expect(value.a[0]).toBeInstanceOf(ExactNumber)
      expect(JSON.stringify(value)).toBe(`{"a":[${digits}]}`)
    },
  )

  test.each(['0', '-0', '1.0', '1e2', '9007199254740992', '0.1', '1e21', '1152921504606847000', '5e-324'])(
    '%s is a number',
    (digits) => {
      expect(parseExactly(digits)).toBe(jsonValue(digits))
    },
  )

  test('security: a number with a long run of zeros is read in linear time', () =>
    expectCpuBelow(1_000, () => expect(decimalForm(`1${'0'.repeat(1_000_000)}1`)).toHaveLength(1_000_004)))

  test('one number has one form, however it is written', () => {
    fc.assert(
      fc.property(fc.bigInt(), fc.nat(30), (digits, zeros) => {
        const one = decimalForm(`${digits}`)
        expect(decimalForm(`${digits}.${'0'.repeat(zeros + 1)}`)).toBe(one)
        expect(decimalForm(`${digits}${'0'.repeat(zeros)}e-${zeros}`)).toBe(one)
        expect(decimalForm(`${digits + 1n}`)).not.toBe(one)
      }),
    )
  })
})

describe('V5: parts of a JSON value', () => {
  test('keep the bytes in which they came', () => {
    const json = Json.raw(Buffer.from('{"calls":[ {"args":{"n": 1.0, "s":"\\u0061"}} ,2]}'))
    const [first] = json.member('calls')?.items() ?? []
    expect(String(first?.member('args')?.bytes)).toBe('{"n": 1.0, "s":"\\u0061"}')
    expect(first?.member('args')?.value).toEqual({ n: 1, s: 'a' })
    expect(first?.member('toString')).toBeUndefined()
    expect(
      String(
        Json.of({ a: [1] })
          .member('a')
          ?.items()[0]?.bytes,
      ),
    ).toBe('1')
  })

  test('text that no front end has read is refused where its bytes could be read in two ways', () => {
    expect(() => Json.parse('{"a":1,"\\u0061":2}')).toThrow(/twice/)
    expect(() => Json.parse(`${'['.repeat(300)}${']'.repeat(300)}`)).toThrow(/deeper/)
    expect(String(Json.parse('\n{"a":\r\n1.0}\n').bytes)).toBe('{"a":  1.0}')
  })
})
