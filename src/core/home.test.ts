import { userInfo } from 'node:os'
import { expect, test } from 'vitest'
import { cacheHome, configHome, homeOf, stateHome } from './home.ts'

test.each([undefined, '', 'relative', '.'])('B6: HOME=%s does not make the current folder the home', (HOME) => {
  expect(homeOf({ HOME })).toBe(userInfo().homedir)
})

test('B11: the variables say where home is', () => {
  expect(homeOf({ HOME: '/home/me', USERPROFILE: '/elsewhere' })).toBe('/home/me')
  expect(homeOf({ USERPROFILE: '/users/me' })).toBe('/users/me')
})

test('B6: XDG folders with relative paths are ignored', () => {
  const HOME = '/home/me'
  const named = { HOME, XDG_CONFIG_HOME: '/etc/me', XDG_STATE_HOME: '/var/me', XDG_CACHE_HOME: '/tmp/me' }
  expect([configHome, stateHome, cacheHome].map((folder) => folder(named))).toEqual(['/etc/me', '/var/me', '/tmp/me'])
  const relative = { HOME, XDG_CONFIG_HOME: 'a', XDG_STATE_HOME: '', XDG_CACHE_HOME: '.' }
  expect([configHome, stateHome, cacheHome].map((folder) => folder(relative))).toEqual([
    '/home/me/.config',
    '/home/me/.local/state',
    '/home/me/.cache',
  ])
})
