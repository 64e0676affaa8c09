import { expect, test } from 'vitest'
import { failureReason } from './message-text.ts'

const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:9'), { code: 'ECONNREFUSED' })

test.each([
  ['the code', refused, 'ECONNREFUSED'],
  ['the code for the first of several addresses', new AggregateError([refused, new Error('x')]), 'ECONNREFUSED'],
  ['the name of an error without a code', new TypeError('POST /?key=secret'), 'TypeError'],
  ['no text that was thrown', 'POST /?key=secret', 'unknown reason'],
])('B6: the reason of a failed connection is %s', (_, thrown, reason) => {
  expect(failureReason(thrown)).toBe(reason)
})
