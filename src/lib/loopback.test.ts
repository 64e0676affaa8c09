import { expect, test } from 'vitest'
import { isProtected } from './loopback.ts'

test.each([
  ['https://gateway.example.com', true],
  ['http://localhost:8080', true],
  ['http://127.1.2.3', true],
  ['http://[::1]', true],
  ['http://[::ffff:127.0.0.1]', true],
  ['http://gateway.example.com', false],
  ['http://localhost.example.com', false],
  ['http://127.0.0.1.example.com', false],
  ['http://0.0.0.0', false],
  ['http://[::ffff:10.0.0.7]', false],
  ['ftp://localhost', false],
])('B6: whether credentials may be sent to %s: %s', (url, allowed) => {
  expect(isProtected(new URL(url))).toBe(allowed)
})
