import { expect, test } from 'vitest'
import { childEnvironment } from './child-process.ts'

const ours = {
  PATH: '/bin',
  HOME: '/home/ada',
  LC_ALL: 'C',
  XDG_CACHE_HOME: '/cache',
  AWS_SECRET_ACCESS_KEY: 'secret',
  TOOLWAY_TOKEN: 'secret',
  SHELL: '() { :; }; echo shock',
  LANG: undefined,
}

test('B6: a child gets the configured variables and nothing of ours but what it needs to find its way', () => {
  expect(childEnvironment({ KEY: 'x', PATH: '/opt/bin' }, ours, 'linux')).toEqual({
    PATH: '/opt/bin',
    HOME: '/home/ada',
    LC_ALL: 'C',
    XDG_CACHE_HOME: '/cache',
    KEY: 'x',
  })
})

test('B6: a child trusts the certificates that we trust', () => {
  const trusted = { NODE_EXTRA_CA_CERTS: '/ca.pem', SSL_CERT_FILE: '/ca.pem', REQUESTS_CA_BUNDLE: '/ca.pem' }
  expect(childEnvironment({}, { ...trusted, HTTPS_PROXY: 'http://me:secret@proxy' }, 'linux')).toEqual(trusted)
})

test('B6: the same on Windows, for any case of the names', () => {
  const windows = { Path: 'C:\\bin', SystemRoot: 'C:\\Windows', TEMP: 'C:\\Temp', SECRET: 'x' }
  expect(Object.keys(childEnvironment({}, windows, 'win32'))).toEqual(['Path', 'SystemRoot', 'TEMP'])
})

test('V18: a configured variable replaces an inherited one whose name has another case on Windows', () => {
  expect(childEnvironment({ PATH: 'D:\\bin' }, { Path: 'C:\\bin', TEMP: 'C:\\Temp' }, 'win32')).toEqual({
    PATH: 'D:\\bin',
    TEMP: 'C:\\Temp',
  })
})
