import fc from 'fast-check'
import { expect, test } from 'vitest'
import { expectCpuBelow } from '../../../tests/fixtures/cpu-time.ts'
import { runs } from '../../../tests/fixtures/runs.ts'
import { readChallenge } from './authorization.ts'

test('B6: a challenge is parsed into metadata URL, scopes and error', () => {
  const header =
    'Bearer realm="x", resource_metadata="https://a.example/m?x=\\"1\\"", scope="a b a", error=insufficient_scope'
  expect(readChallenge(403, [header])).toEqual({
    status: 403,
    resourceMetadata: 'https://a.example/m?x="1"',
    scopes: ['a', 'b'],
    error: 'insufficient_scope',
  })
})

test('B6: of several schemes and headers the Bearer one counts, of parameters the first', () => {
  const other = 'Basic realm="a, Bearer scope=no", DPoP algs="ES256"'
  expect(readChallenge(401, [other, 'bearer scope="x", scope="y"'])).toEqual({ status: 401, scopes: ['x'] })
  expect(readChallenge(401, [`${other}, Bearer error="e", Basic scope="no"`])).toEqual({ status: 401, error: 'e' })
  expect(readChallenge(401, ['Bearer'])).toEqual({ status: 401 })
  expect(readChallenge(401, [])).toEqual({ status: 401 })
})

test('B6: any header is parsed or ignored, and never throws', async () => {
  const odd = fc.string({ unit: fc.constantFrom(...'Bearer ="\\,scope\u0000é'.split('')), maxLength: 60 })
  fc.assert(
    fc.property(fc.oneof(fc.string(), odd), (header) => {
      const { scopes = [] } = readChallenge(401, [header])
      for (const scope of scopes) expect(scope).toMatch(/^[\x21-\x7e]+$/)
    }),
    runs(400, 20_000),
  )
  await expectCpuBelow(500, () => readChallenge(401, [`Bearer ${'a="'.repeat(2_000)}`]))
})
