import { userInfo } from 'node:os'
import { expect, test } from 'vitest'
import { homeOf } from './home.ts'

test.each([undefined, '', 'relative', '.'])('B6: HOME=%s does not make the current folder the home', (HOME) => {
  expect(homeOf({ HOME })).toBe(userInfo().homedir)
})

test('B11: the variables say where home is', () => {
  expect(homeOf({ HOME: '/home/me', USERPROFILE: '/elsewhere' })).toBe('/home/me')
  expect(homeOf({ USERPROFILE: '/users/me' })).toBe('/users/me')
})
