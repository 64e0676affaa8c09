import { createServer, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startProxy } from '../../tests/fixtures/proxy.ts'
import { selfSigned } from '../../tests/fixtures/self-signed.ts'
import { createHttpClient } from './http-client.ts'

async function listening(server: Server): Promise<number> {
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** Starts two servers whose host names only the proxy can resolve. */
async function serving() {
  const pair = await selfSigned('DNS:out.invalid')
  const usual = getCACertificates('default')
  setDefaultCACertificates([...usual, pair.cert])
  onTestFinished(() => setDefaultCACertificates(usual))
  const answer: Parameters<typeof createServer>[1] = async (request, response) =>
    response.end(`${request.headers.host} ${request.url} ${await text(request)} ${Object.keys(request.headers).sort()}`)
  const plain = `http://out.invalid:${await listening(createServer(answer))}`
  const secure = `https://out.invalid:${await listening(createSecureServer(pair, answer))}`
  return { plain, secure }
}

async function ask(address: string, env: Record<string, string>, options = {}): Promise<string> {
  await using way = createHttpClient(new URL(address), options, env)
  const { statusCode, body } = await way.request({ method: 'POST', path: '/v1/x?y', headers: { key: 'k' }, body: 'hi' })
  return `${statusCode} ${await body.text()}`
}

describe('G1: what the operator has named is reached through the proxy of the environment', () => {
  const asCredential = (url: string) => url.replace('//', '//me:s3cret@')

  test('encrypted through a tunnel, otherwise handed on; the credential is for the proxy alone', async () => {
    const { plain, secure } = await serving()
    await using proxy = await startProxy({ credential: 'me:s3cret' })
    const env = { ALL_PROXY: asCredential(proxy.url) }
    for (const address of [plain, secure]) {
      const { host } = new URL(address)
      for (const options of [{}, { connections: 1, headersTimeout: 0, bodyTimeout: 0 }]) {
        const said = await ask(address, env, options)
        expect(said).toContain(`200 ${host} /v1/x?y hi `)
        expect(said).not.toContain('proxy-authorization')
      }
    }
    expect(new Set(proxy.asked)).toEqual(new Set([`POST ${plain}/v1/x?y`, `CONNECT ${new URL(secure).host}`]))
  })

  test('straight, where none is named or the address is excepted', async () => {
    await using proxy = await startProxy()
    const port = await listening(createServer((_, response) => response.end('here')))
    expect(await ask(`http://127.0.0.1:${port}`, { HTTP_PROXY: proxy.url })).toBe('200 here')
    expect(await ask(`http://127.0.0.1:${port}`, {})).toBe('200 here')
    await expect(ask('http://out.invalid:9', { HTTP_PROXY: proxy.url, NO_PROXY: '.invalid' })).rejects.toThrow(
      'ENOTFOUND',
    )
    expect(proxy.asked).toEqual([])
  })

  test.each(['plain', 'secure'] as const)('%s: an error of the proxy names the proxy and what to do', async (kind) => {
    const address = (await serving())[kind]
    await using strict = await startProxy({ credential: 'me:s3cret' })
    await expect(ask(address, { ALL_PROXY: strict.url })).rejects.toThrow(RegExp(`${strict.url}.*407.*ALL_PROXY`))
    const wrong = ask(address, { ALL_PROXY: strict.url.replace('//', '//me:wr0ng@') })
    await expect(wrong).rejects.toThrow(/407.*ALL_PROXY/)
    await expect(wrong).rejects.not.toThrow('wr0ng')
    const gone = strict.url
    await strict[Symbol.asyncDispose]()
    await expect(ask(address, { ALL_PROXY: gone })).rejects.toThrow(
      `the proxy ${gone} cannot be reached or does not answer (ECONNREFUSED). Check ALL_PROXY, or add out.invalid to`,
    )
    await expect(ask(address, { ALL_PROXY: 'socks5://127.0.0.1:1' })).rejects.toThrow(/ALL_PROXY.*socks5/)
  })

  test('a tunnel that the proxy refuses is an error with its status', async () => {
    const { secure } = await serving()
    await using proxy = await startProxy({ refusal: 403 })
    await expect(ask(secure, { HTTPS_PROXY: proxy.url })).rejects.toThrow(/out\.invalid:\d+ \(HTTP 403\)/)
  })
})
