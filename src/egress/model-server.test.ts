import { expect, test } from 'vitest'
import { readServerMessage, retryDelayMs } from './model-server.ts'

const now = Date.parse('2026-11-03T12:00:00Z')

test.each([
  [{ 'retry-after': '3' }, 3_000],
  [{ 'retry-after': '0.25' }, 250],
  [{ 'retry-after': 'Tue, 03 Nov 2026 12:00:05 GMT' }, 5_000],
  [{ 'retry-after': 'Tue, 03 Nov 2026 11:00:00 GMT' }, 0],
  [{ 'retry-after-ms': '120', 'retry-after': '1' }, 120],
  [{ 'retry-after': 'soon' }, undefined],
  [{}, undefined],
])('S6: %j', (headers: Record<string, string>, expected) => {
  expect(retryDelayMs((name) => headers[name], now)).toBe(expected)
})

test('S6: the quoted message of a model server has no hidden characters and no half emoji', () => {
  const hidden = '\u001b[31mno\u202e such\r\nmodel\u{e0041}\u200b'
  expect(readServerMessage(JSON.stringify({ error: { message: hidden } }), []).message).toBe('no such model')
  const { message } = readServerMessage(`${'x'.repeat(399)}\u{1f600}`, [])
  expect(message.isWellFormed()).toBe(true)
})

test('B6: a secret is masked, also one that the server wrote with JSON escapes', () => {
  const body = '{"error":{"message":"the key sk\\u002dsecret is wrong"}}'
  expect(readServerMessage(body, ['sk-secret']).message).toBe('the key *** is wrong')
  // Nothing is left of a secret that contains another one.
  expect(readServerMessage(body, ['secret', 'sk-secret', 'sk-']).message).toBe('the key *** is wrong')
})
