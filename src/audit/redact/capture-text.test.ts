import { expect, test } from 'vitest'
import { Json } from '../../json/json.ts'
import { captureJson, createRedactor } from './redactor.ts'

const secret = 'correct-horse-battery'
const redactor = createRedactor({ secrets: [secret, '12345678901234567890'], keys: ['*password*', '*token*'] })
const captured = (text: string, maxBytes = 1_000) => captureJson(redactor, Json.raw(Buffer.from(text)), maxBytes)

test('V11: text without secrets is captured byte for byte, so that the call can be repeated', () => {
  const text = '{ "id": 9007199254740993001, "name": "ä", "list": [1.50] }'
  expect(captured(text)).toEqual({ text, bytes: Buffer.byteLength(text), truncated: false, redacted: false })
})

test('V11: known secrets, secret names and credentials are redacted, also in nested JSON text', () => {
  const inner = JSON.stringify({ password: 'hunter2', note: `Bearer ${secret}` })
  const { text, redacted, truncated } = captured(
    JSON.stringify({ api_token: 'abc', body: inner, encoded: btoa(secret) }),
  )
  expect({ redacted, truncated }).toEqual({ redacted: true, truncated: false })
  for (const hidden of ['abc', 'hunter2', secret, btoa(secret)]) expect(text).not.toContain(hidden)
  expect(JSON.parse(text)).toMatchObject({ api_token: '[redacted]' })
})

test('V11: what a repeated key hides from the parser is not captured', () => {
  for (const text of ['{"a":"password=hunter2","a":"ok"}', '{"list":[{"token":"hunter2","token":5,"a":1}]}']) {
    const { text: shown, redacted } = captured(text)
    expect({ shown, redacted }).toEqual({ shown: expect.not.stringContaining('hunter2'), redacted: true })
  }
})

test('V11: a secret number that JSON parsers round is redacted', () => {
  expect(captured('{"n":12345678901234567890}')).toMatchObject({ redacted: true })
  expect(captured('{"n":12345678901234567890}').text).not.toContain('12345678901234567890')
})

test('V11: long values are redacted in full up to the limit, and not only as far as an audit record goes', () => {
  const long = `${'x '.repeat(50_000)}password=hunter2 ${secret}`
  const { text, truncated } = captured(JSON.stringify({ long }), 200_000)
  expect(truncated).toBe(false)
  expect(text.length).toBeGreaterThan(100_000)
  expect(text).not.toContain('hunter2')
  expect(text).not.toContain(secret)
})

test('V11: values above the limit are cut, and a secret that crosses the cut is not shown in part', () => {
  for (let before = 970; before < 1_000; before++) {
    const { text, truncated, bytes } = captured(
      JSON.stringify({ a: `${'y'.repeat(before)} ${secret}`, b: 'z'.repeat(9_000) }),
    )
    expect(truncated).toBe(true)
    expect(bytes).toBeGreaterThan(9_000)
    expect(text.length).toBeLessThanOrEqual(1_000)
    expect(text).not.toContain(secret.slice(0, 8))
  }
})
