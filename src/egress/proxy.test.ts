import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../tests/fixtures/runs.ts'
import { ProxyError, proxyFor, proxySecrets } from './proxy.ts'

const of = (url: string, env: Record<string, string>) => proxyFor(new URL(url), env)
const proxy = 'http://proxy.corp:3128'

/** The text about a proxy that a person may see: its origin or the error message. */
function toldOf(url: string, env: Record<string, string>): string {
  try {
    return of(url, env)?.origin ?? ''
  } catch (error) {
    if (error instanceof ProxyError) return error.message
    throw error
  }
}

describe('G1: the proxy that an environment names', () => {
  test.each([
    ['https://a.example/', { HTTPS_PROXY: proxy }, 'HTTPS_PROXY'],
    ['https://a.example/', { https_proxy: proxy, HTTPS_PROXY: 'http://other' }, 'https_proxy'],
    ['https://a.example/', { https_proxy: ' ', ALL_PROXY: proxy }, 'ALL_PROXY'],
    ['https://a.example/', { HTTP_PROXY: proxy }, undefined],
    ['http://a.example/', { HTTPS_PROXY: proxy }, undefined],
    ['http://a.example/', { HTTP_PROXY: proxy, ALL_PROXY: 'http://other' }, 'HTTP_PROXY'],
    ['http://a.example/', { all_proxy: 'proxy.corp:3128' }, 'all_proxy'],
    ['https://a.example/', {}, undefined],
  ])('%s in %j', (url, env, variable) => {
    expect(of(url, env as Record<string, string>)?.variable).toBe(variable)
    if (variable) expect(of(url, env as Record<string, string>)?.origin).toBe(proxy)
  })

  test.each([
    ...[
      'http://localhost/',
      'https://LOCALHOST.:8443/',
      'http://app.localhost/',
      'http://127.0.0.1/',
      'http://127.9.9.9/',
    ],
    ...['http://[::1]/', 'http://[::ffff:127.0.0.1]/', 'http://0.0.0.0/', 'http://0x7f.1/', 'http://2130706433/'],
  ])('is never asked for this machine: %s', (url) => {
    expect(of(url, { ALL_PROXY: proxy })).toBeUndefined()
  })

  test.each([
    ['https://a.example/', 'a.example', true],
    ['https://A.Example./', 'b.example, A.EXAMPLE', true],
    ['https://x.a.example/', 'a.example', true],
    ['https://x.a.example/', '.a.example', true],
    ['https://x.a.example/', '*.a.example', true],
    ['https://evila.example/', 'a.example .a.example', false],
    ['https://a.example.evil/', 'a.example', false],
    ['https://a.example/', '*', true],
    ['https://a.example/', 'a.example:443', true],
    ['https://a.example:8443/', 'a.example:443', false],
    ['http://a.example/', 'a.example:80', true],
    ['https://10.1.2.3/', '10.0.0.0/8', true],
    ['https://11.1.2.3/', '10.0.0.0/8,10.0.0.0/99', false],
    ['https://10.1.2.3/', '10.1.2.3', true],
    ['https://110.1.2.3/', '0.1.2.3,.1.2.3', false],
    ['https://10.1.2.3:8443/', '10.1.2.3:8443', true],
    ['https://[fd00::1]/', 'fd00::1', true],
    ['https://[fd00::1]:8443/', '[fd00::1]:8443', true],
    ['https://[fd00::1]/', 'fd00::/8', true],
    ['https://a.example/', '10.0.0.0/8, ,:,.,/,:443', false],
  ])('NO_PROXY: %s with %j', (url, list, excepted) => {
    expect(of(url, { ALL_PROXY: proxy, NO_PROXY: list }) === undefined).toBe(excepted)
    expect(of(url, { ALL_PROXY: proxy, NO_PROXY: 'other', no_proxy: list }) === undefined).toBe(excepted)
  })

  test('B6: a user and a password in its address become a header and count as secrets', () => {
    const env = { HTTPS_PROXY: 'http://me:p%40ss-w%zz@proxy.corp:3128/', http_proxy: 'corp%5Cme:s3cret@proxy.corp' }
    const found = of('https://a.example/', env)
    const sent = Buffer.from('me:p%40ss-w%zz').toString('base64')
    expect(found).toEqual({ origin: proxy, authorization: `Basic ${sent}`, variable: 'HTTPS_PROXY' })
    const plain = Buffer.from('corp\\me:s3cret').toString('base64')
    expect(of('http://a.example/', env)?.authorization).toBe(`Basic ${plain}`)
    expect(proxySecrets(env)).toEqual(expect.arrayContaining(['p%40ss-w%zz', sent, 's3cret', plain]))
    expect(proxySecrets({ HTTPS_PROXY: proxy, ALL_PROXY: 'not an address' })).toEqual([])
  })

  test('E1: one that cannot be used is not gone around', () => {
    for (const value of ['socks5://me:s3cret@127.0.0.1:1080', 'http://me:s3cret@:::']) {
      const asked = () => of('https://a.example/', { ALL_PROXY: value })
      expect(asked).toThrow(/^ALL_PROXY .*HOST:PORT.*a\.example.*NO_PROXY/)
      expect(asked).not.toThrow('s3cret')
      expect(of('https://a.example/', { ALL_PROXY: value, NO_PROXY: 'a.example' })).toBeUndefined()
    }
  })

  test('no value of the variables makes a message show the password', () => {
    const text = fc.string({ maxLength: 30 })
    const scheme = fc.constantFrom('', 'http://', 'https://', 'socks5://')
    fc.assert(
      fc.property(scheme, text, fc.oneof(text, fc.ipV6()), (before, address, exceptions) => {
        const url = 'https://mcp.example/'
        const env = { HTTPS_PROXY: `${before}me:zzz-secret-zzz@${address}`, no_proxy: exceptions }
        return !toldOf(url, env).includes('zzz-secret-zzz') && of(url, { ...env, no_proxy: '*' }) === undefined
      }),
      runs(40, 2_000),
    )
  })
})
