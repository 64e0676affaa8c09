import { describe, expect, test } from 'vitest'
import { HttpError } from '../errors.ts'
import { allowedHosts } from './hosts.ts'
import { httpConfig } from './server.fixture.ts'

const hosts = allowedHosts(
  httpConfig({
    host: '192.0.2.7',
    allowedHosts: ['Tools.Example.com', 'other.example.com:8443', '2001:db8::1'],
    allowedOrigins: ['https://app.example.com'],
  }),
  4322,
)

describe('B6: exact Host checks', () => {
  test.each([
    '192.0.2.7:4322',
    'localhost:4322',
    'LOCALHOST:4322',
    '127.0.0.1:4322',
    '[::1]:4322',
    'tools.example.com',
    'tools.example.com:4322',
    'other.example.com:8443',
    '[2001:db8::1]',
  ])('%s is accepted', (host) => {
    expect(() => hosts.check(host, undefined)).not.toThrow()
  })

  test.each([
    'localhost',
    'localhost:80',
    'evil.example.com',
    'localhost.evil.example.com:4322',
    'other.example.com',
    'tools.example.com:9',
    'tools.example.com.:4322',
    ' localhost:4322',
    '',
    undefined,
  ])('%s is refused, naming the setting', (host) => {
    expect(() => hosts.check(host, undefined)).toThrow(/server\.allowedHosts/)
  })

  test('the port may be left out only where HTTP implies it', () => {
    const plain = allowedHosts(httpConfig(), 80)
    expect(() => plain.check('localhost', 'http://localhost')).not.toThrow()
  })
})

describe('B6: exact Origin checks', () => {
  test.each(['http://localhost:4322', 'http://[::1]:4322', 'https://app.example.com', undefined])(
    '%s is accepted',
    (origin) => {
      expect(() => hosts.check('localhost:4322', origin)).not.toThrow()
    },
  )

  test.each([
    'null',
    'http://localhost',
    'http://localhost:4323',
    'ftp://localhost:4322',
    'https://tools.example.com',
    'https://app.example.com.evil.org',
    'http://app.example.com',
    '',
  ])('%s is refused', (origin) => {
    const refused = () => hosts.check('localhost:4322', origin)
    expect(refused).toThrow(HttpError)
    expect(refused).toThrow(/server\.allowedOrigins/)
  })
})

describe('B6, G10: pages behind a proxy', () => {
  test.each([
    ['tools.example.com', 'https://tools.example.com'],
    ['tools.example.com', 'http://tools.example.com'],
    ['Tools.Example.com', 'https://tools.example.com'],
    ['other.example.com:8443', 'https://other.example.com:8443'],
    ['[2001:db8::1]', 'https://[2001:db8::1]'],
  ])('a page of the accepted host %s may send requests', (host, origin) => {
    expect(() => hosts.check(host, origin)).not.toThrow()
  })

  test.each([
    ['tools.example.com', 'https://other.example.com:8443'],
    ['tools.example.com', 'https://tools.example.com:8443'],
    ['tools.example.com', 'https://tools.example.com.evil.org'],
    ['tools.example.com', 'https://evil.org'],
    ['tools.example.com', 'https://evil.org/tools.example.com'],
    ['tools.example.com', 'null'],
  ])('for the host %s, a page of %s may not', (host, origin) => {
    expect(() => hosts.check(host, origin)).toThrow(/server\.allowedOrigins/)
  })

  test('a page of a host that is not accepted may not, although host and origin are the same', () => {
    expect(() => hosts.check('evil.org', 'http://evil.org')).toThrow(/server\.allowedHosts/)
  })
})

test('B6: the address of a request that came through a proxy is https', () => {
  const names = ['192.0.2.7:4322', 'tools.example.com:4322', 'localhost:8080', '127.0.0.1', '[::1]:4322']
  for (const name of names) expect(hosts.addressOf(name)).toBe(`http://${name}`)
  for (const name of ['tools.example.com', 'other.example.com:8443', '[2001:db8::1]', 'localhost.example.com'])
    expect(hosts.addressOf(name)).toBe(`https://${name}`)
  expect(allowedHosts(httpConfig(), 80).addressOf('gate.example')).toBe('http://gate.example')
})
