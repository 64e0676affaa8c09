import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../tests/fixtures/runs.ts'
import { members } from '../json/json-text.ts'
import { jsonValue } from '../json/parse-json.ts'
import { asRecord } from '../lib/is-record.ts'
import { readEnvelope } from './message.ts'

const notesOf = (result: string) => readEnvelope(Buffer.from(`{"jsonrpc":"2.0","id":1,"result":${result}}`))?.notes

describe('readEnvelope', () => {
  const key = fc.constantFrom('jsonrpc', 'id', 'method', 'params', 'result', 'error', '\\u0069d', 'rest', 'other')
  const value = fc.oneof(fc.json(), fc.constantFrom('{"a":{"b":[1]}}', '{}', '{,}', '1 2', ''))
  const message = fc
    .array(fc.tuple(key, value), { maxLength: 6 })
    .map((all) => ` { ${all.map(([name, json]) => `"${name}" : ${json}`).join(' , ')} } `)

  test('finds the members that any reader finds, and refuses what it refuses', () => {
    fc.assert(
      fc.property(message, (text) => {
        const bytes = Buffer.from(text)
        const expected = members(bytes)
        const found = readEnvelope(bytes)
        expect(found === undefined).toBe(expected === undefined)
        for (const name of ['jsonrpc', 'id', 'method', 'params', 'result', 'error'] as const) {
          expect(found?.[name]?.toString()).toBe(expected?.get(name)?.toString())
        }
      }),
      runs(400, 20_000),
    )
  })

  test('T2: agrees with JSON.parse about the isError of a result', () => {
    const flag = fc.constantFrom('true', 'false', '"true"', 'null', '1', '{"isError":true}', '["isError",true]')
    const name = fc.constantFrom('isError', '\\u0069sError', 'isErro\\u0072', 'error', '\\"isError')
    const json = fc
      .array(fc.tuple(name, flag))
      .map((all) => `{${all.map(([key, said]) => `"${key}": ${said}`).join()}}`)
    fc.assert(
      fc.property(json, (text) => {
        expect(notesOf(text)?.isError).toBe(asRecord(jsonValue(text)).isError === true)
      }),
      runs(100, 5_000),
    )
  })

  test.each(['resultType', 'content', 'task', 'isError'])(
    'V1: notes that %s is repeated, however it is spelt',
    (name) => {
      const escaped = `\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}`
      expect(notesOf(`{"${name}":1,"other":2,"${escaped}":3}`)?.repeated).toBe(name)
      expect(notesOf(`{"${name}":{"${name}":1},"other":{"${name}":1}}`)?.repeated).toBeUndefined()
    },
  )

  test('B2: notes members by which eras differ, however they are spelt, and no text that mentions them', () => {
    for (const name of ['resultType', 'ttlMs', 'cacheScope', 'task', 'requestState', 'inputRequests', 'r\\u0065st']) {
      expect(notesOf(`{"content":[],"${name}":1}`)).toEqual({ isError: false, special: true, blocks: 0 })
    }
    const mentions =
      '{"content":[{"resultType":"\\"ttlMs\\":1"}],"structuredContent":{"task":{"isError":true}},"_meta":{}}'
    expect(notesOf(mentions)).toEqual({ isError: false, special: false, blocks: 1 })
    expect(notesOf('{}')).toEqual({ isError: false, special: false, blocks: 0 })
  })

  test('V6: counts the content blocks, contents and messages of a result, and nothing inside them', () => {
    for (const name of ['content', 'contents', 'messages']) {
      expect(notesOf(`{"${name}": [ 1 , [2,3], {"content":[4,5]} ] }`)?.blocks).toBe(3)
      expect(notesOf(`{"${name}":{"a":[1,2]},"other":[1,2]}`)?.blocks).toBe(0)
      for (const broken of ['[1,]', '[1 2]', '[,1]', '[1']) expect(notesOf(`{"${name}":${broken}}`)).toBeUndefined()
    }
  })
})
