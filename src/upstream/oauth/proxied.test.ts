import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startProxy } from '../../../tests/fixtures/proxy.ts'
import { selfSigned } from '../../../tests/fixtures/self-signed.ts'
import { systemClock } from '../../core/clock.ts'
import { OAuthHttp } from './web.ts'

/** An authorization server whose host name only the proxy can resolve. */
async function serving() {
  const pair = await selfSigned('DNS:id.invalid')
  const usual = getCACertificates('default')
  setDefaultCACertificates([...usual, pair.cert])
  const server = createServer(pair, async (request, response) => {
    if (request.url === '/moved') return response.writeHead(302, { location: '/metadata' }).end()
    if (request.url === '/long') return response.end('x'.repeat(300 * 1024))
    response.end(JSON.stringify({ asked: request.url, said: await text(request) }))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => {
    setDefaultCACertificates(usual)
    server.closeAllConnections()
    server.close()
  })
  return `https://id.invalid:${(server.address() as AddressInfo).port}`
}

const webBehind = (proxy: string) => new OAuthHttp(systemClock, { HTTPS_PROXY: proxy })

describe('B6: authorization servers behind a proxy', () => {
  test('are asked through it, as carefully as without one', async () => {
    const url = await serving()
    await using proxy = await startProxy({ credential: 'me:s3cret' })
    const web = webBehind(proxy.url.replace('//', '//me:s3cret@'))
    expect(await web.get(new URL('/moved', url), 'public')).toEqual({
      status: 200,
      body: { asked: '/metadata', said: '' },
    })
    const form = { body: 'grant_type=x', headers: { 'content-type': 'application/x-www-form-urlencoded' } }
    expect((await web.post(new URL('/token', url), 'public', form)).body).toEqual({ asked: '/token', said: form.body })
    await expect(web.post(new URL('/moved', url), 'public', form)).rejects.toThrow('redirect')
    await expect(web.get(new URL('/long', url), 'public')).rejects.toThrow('more than 256 KiB')
    expect(new Set(proxy.asked)).toEqual(new Set([`CONNECT ${new URL(url).host}`]))
  })

  test('a private address is refused without a request to the proxy', async () => {
    await using proxy = await startProxy()
    for (const host of ['10.0.0.1', '169.254.169.254', '[fd00::1]', '127.0.0.1']) {
      await expect(webBehind(proxy.url).get(new URL(`https://${host}/`), 'public')).rejects.toThrow(
        'private or reserved',
      )
    }
    expect(proxy.asked).toEqual([])
  })

  test('E1: a proxy that does not let us through, or cannot be used, is named', async () => {
    await using proxy = await startProxy({ credential: 'me:s3cret' })
    const asked = (at: string) => webBehind(at).get(new URL('https://id.invalid/'), 'public')
    await expect(asked(proxy.url)).rejects.toMatchObject({
      unreachable: true,
      message: expect.stringMatching(RegExp(`https://id\\.invalid.*${proxy.url}.*407`)),
    })
    await expect(asked('socks5://127.0.0.1')).rejects.toMatchObject({
      unreachable: true,
      message: expect.stringMatching(/HTTPS_PROXY.*socks5/),
    })
  })
})
