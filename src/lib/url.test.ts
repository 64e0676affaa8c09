import { expect, test } from 'vitest'
import { basicAuth, basicAuthOf, isProtected } from './url.ts'

test('user and password are encoded as UTF-8', () => {
  expect(basicAuth('Aladdin', 'open sesame')).toBe('Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==')
  expect(basicAuth('test', '123£')).toBe('Basic dGVzdDoxMjPCow==')
})

test('escapes in a URL are decoded, and a lone percent sign is kept', () => {
  expect(basicAuthOf(new URL('http://us%40er:p%3Ass@host'))).toBe(basicAuth('us@er', 'p:ss'))
  expect(basicAuthOf(new URL('http://user:50%@host'))).toBe(basicAuth('user', '50%'))
  expect(basicAuthOf(new URL('http://token@host'))).toBe(basicAuth('token', ''))
  expect(basicAuthOf(new URL('http://host'))).toBeUndefined()
})

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
