import { expect, test } from 'vitest'
import { basicAuth, basicAuthOf } from './basic-auth.ts'

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
