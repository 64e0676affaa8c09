import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyCharacter } from '../../../tests/fixtures/any-character.ts'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { bodyOf, refusalOf, runTool } from '../access.fixture.ts'
import { hashTool } from './hash.ts'
import { nativeTools } from './index.ts'

const hashed = async (args: unknown) => {
  const { content, structuredContent } = bodyOf(await runTool(hashTool, args))
  const { result } = structuredContent as { algorithm: string; result: string }
  expect(content).toEqual([{ type: 'text', text: result }])
  return structuredContent as { algorithm: string; result: string }
}

test.each([
  ['sha256', 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'],
  ['sha1', 'a9993e364706816aba3e25717850c26c9cd0d89d'],
  ['md5', '900150983cd24fb0d6963f7d28e17f72'],
  ['sha3-256', '3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532'],
  ['crc32', '352441c2'],
  ['base64', 'YWJj'],
  ['base64url', 'YWJj'],
  ['hex', '616263'],
  ['utf8', 'abc'],
])('S2: hash gives the published %s of "abc", structured and as plain text', async (algorithm, result) => {
  expect(await hashed({ data: 'abc', algorithm })).toEqual({ algorithm, result })
})

test('S2: hash uses sha256 by default, and supports the long digests', async () => {
  expect((await hashed({ data: '' })).result).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
  for (const [algorithm, length] of [
    ['sha384', 96],
    ['sha512', 128],
    ['sha3-512', 128],
    ['blake2b512', 128],
  ] as const) {
    expect((await hashed({ data: 'abc', algorithm })).result).toMatch(new RegExp(`^[0-9a-f]{${length}}$`))
  }
  expect((await hashed({ data: '', algorithm: 'crc32' })).result).toBe('00000000')
})

test('S2: hash reads bytes in base64 (also the URL alphabet, also unpadded) and hex, blanks allowed', async () => {
  const digest = (await hashed({ data: 'abc' })).result
  expect((await hashed({ data: 'YW\nJj', encoding: 'base64' })).result).toBe(digest)
  expect((await hashed({ data: '61 62 63', encoding: 'hex' })).result).toBe(digest)
  expect((await hashed({ data: '_-8', encoding: 'base64', algorithm: 'hex' })).result).toBe('ffef')
})

test('S2: hash decodes what it encoded', async () => {
  const text = fc.string({ unit: anyCharacter }).filter((data) => data.isWellFormed())
  await fc.assert(
    fc.asyncProperty(text, fc.constantFrom('base64', 'hex'), async (data, encoding) => {
      const encoded = (await hashed({ data, algorithm: encoding })).result
      expect((await hashed({ data: encoded, encoding, algorithm: 'utf8' })).result).toBe(data)
    }),
  )
})

test.each([
  [{ data: 'abc!', encoding: 'base64' }, 'not valid base64'],
  [{ data: 'abcde', encoding: 'base64' }, 'not valid base64'],
  [{ data: 'abc', encoding: 'hex' }, 'not valid hex'],
  [{ data: '\ud800' }, 'not valid utf8'],
  [{ data: 'ff', encoding: 'hex', algorithm: 'utf8' }, 'not UTF-8'],
  [{ data: 'abc', algorithm: 'SHA256' }, 'did you mean "sha256"?'],
  [{}, '"data" is missing'],
])('S2: hash refuses %j rather than hash something else', async (args, sentence) => {
  const refusal = await refusalOf(runTool(hashTool, args))
  expect(refusal.code).toBe('INVALID_ARGUMENTS')
  expect(refusal.message).toContain(sentence)
})

test('S2: the native tools are those asked for; names that are not known yet are passed over', () => {
  const named = (...names: string[]) => nativeTools({ names, clock: createManualClock() }).map(({ name }) => name)
  expect(named('time', 'hash', 'fetch', 'generate')).toEqual(['hash', 'time'])
  expect(named('hash')).toEqual(['hash'])
  expect(named()).toEqual([])
})
