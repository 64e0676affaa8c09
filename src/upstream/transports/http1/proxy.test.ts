import { createServer, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, createServer as createRawServer } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startProxy } from '../../../../tests/fixtures/proxy.ts'
import { selfSigned } from '../../../../tests/fixtures/self-signed.ts'
import { until } from '../../../../tests/fixtures/until.ts'
import { systemClock } from '../../../core/clock.ts'
import { proxyFor } from '../../../egress/proxy.ts'
import { type ResponseHead, readWholeBody } from '../http-channel.ts'
import { noResponseError, rejectedRequest } from '../transport-errors.ts'
import { Http1Channel } from './channel.ts'

/** A server whose host name only the proxy can resolve. Its response says at which URL and how it was asked. */
async function serving(pair?: { key: string; cert: string }) {
  const server: Server = pair ? createSecureServer(pair) : createServer()
  server.on('request', async (request, response) => {
    let length = 0
    for await (const chunk of request) length += chunk.length
    const told = { url: request.url, host: request.headers.host, proxy: request.headers['proxy-authorization'], length }
    response.end(JSON.stringify(told))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `${pair ? 'https' : 'http'}://mcp.example.test:${(server.address() as AddressInfo).port}`
}

/** A channel that uses this proxy, as if the environment named it. */
function behind(proxy: string, url: string): Http1Channel {
  const env = { HTTPS_PROXY: proxy, HTTP_PROXY: proxy }
  const channel = new Http1Channel(url, systemClock, { proxy: proxyFor(new URL(url), env) })
  onTestFinished(() => channel[Symbol.asyncDispose]() as Promise<void>)
  return channel
}

async function ask(
  channel: Http1Channel,
  body = 'ping',
  signal?: AbortSignal,
): Promise<{ head: ResponseHead; said: unknown }> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const head = await channel.request(
    { method: 'POST', path: '/mcp?a=b', headers: { accept: '*/*' }, body: Buffer.from(body), signal },
    (head) =>
      readWholeBody(head, {
        maxLength: 1 << 20,
        done: (bytes) => resolve(String(bytes)),
        lost: reject,
        tooLong: reject,
      }),
  )
  const text = await promise
  return { head, said: text.startsWith('{') ? JSON.parse(text) : text }
}

function trust(...certificates: string[]): void {
  const usual = getCACertificates('default')
  setDefaultCACertificates([...usual, ...certificates])
  onTestFinished(() => setDefaultCACertificates(usual))
}

/** The error message for the caller, which must not contain secrets. */
async function sentence(channel: Http1Channel): Promise<string> {
  const thrown = await ask(channel).then(
    () => undefined,
    (error) => error,
  )
  const place = { name: 'files', origin: 'https://mcp.example.test', established: true }
  const told = noResponseError(place, thrown) as Error & { code: string }
  expect(told).toMatchObject({ code: 'SERVER_UNAVAILABLE', details: { unsent: true } })
  expect(told.message).not.toContain('s3cret')
  return told.message
}

const withCredential = (url: string, credential: string) => url.replace('//', `//${credential}@`)

describe('G1: servers behind the proxy of a company', () => {
  test('an encrypted one is reached through a tunnel, under its own name, and the tunnel is used again', async () => {
    const pair = await selfSigned('DNS:mcp.example.test')
    const url = await serving(pair)
    await using proxy = await startProxy({ credential: 'me:s3cret p@ss' })
    const through = withCredential(proxy.url, 'me:s3cret%20p%40ss')
    await expect(ask(behind(through, url))).rejects.toMatchObject({
      written: false,
      cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
    })
    trust(pair.cert)
    const channel = behind(through, url)
    const { host } = new URL(url)
    expect((await ask(channel)).said).toEqual({ url: '/mcp?a=b', host, length: 4 })
    expect((await ask(channel, 'x'.repeat(200_000))).said).toMatchObject({ length: 200_000 })
    expect(proxy.asked).toEqual([`CONNECT ${host}`, `CONNECT ${host}`])
    await channel[Symbol.asyncDispose]()
    await until(() => proxy.open === 0, { what: 'the end of all connections' })
  })

  test('a proxy may want to be asked over TLS itself', async () => {
    const [pair, own] = [await selfSigned('DNS:mcp.example.test'), await selfSigned()]
    trust(pair.cert, own.cert)
    await using proxy = await startProxy({ pair: own })
    for (const url of [await serving(pair), await serving()]) {
      expect((await ask(behind(proxy.url, url))).said).toMatchObject({ host: new URL(url).host })
    }
    expect(proxy.asked).toHaveLength(2)
  })

  test('one without TLS is asked for by its whole address, and the credential of the proxy goes no further', async () => {
    const url = await serving()
    await using proxy = await startProxy({ credential: 'me:s3cret' })
    const channel = behind(withCredential(proxy.url, 'me:s3cret'), url)
    for (const _ of [1, 2])
      expect((await ask(channel)).said).toEqual({ url: '/mcp?a=b', host: new URL(url).host, length: 4 })
    expect(proxy.asked).toEqual([`POST ${url}/mcp?a=b`, `POST ${url}/mcp?a=b`])
    expect(proxy.open).toBe(1)
  })

  test('E1: a proxy that is not there, wants a credential, or does not pass us on is named, with what to do', async () => {
    const urls = ['https://mcp.example.test/mcp', 'http://mcp.example.test/mcp']
    for (const [at, url] of urls.entries()) {
      const variable = ['HTTPS_PROXY', 'HTTP_PROXY'][at]
      await using proxy = await startProxy({ credential: 'me:s3cret' })
      expect(await sentence(behind(proxy.url, url))).toMatch(
        RegExp(`files: the proxy ${proxy.url} .*407.*${variable}.*USER:PASSWORD@HOST`),
      )
      expect(await sentence(behind(withCredential(proxy.url, 'me:s3cret-of-old'), url))).toMatch(
        RegExp(`files: the proxy ${proxy.url} .*407.*${variable}\\.$`),
      )
      await proxy[Symbol.asyncDispose]()
      expect(await sentence(behind(withCredential(proxy.url, 'me:s3cret'), url))).toBe(
        `Could not reach files: the proxy ${proxy.url} cannot be reached or does not answer (ECONNREFUSED). Check ${variable}, or add mcp.example.test to NO_PROXY.`,
      )
    }
    await using strict = await startProxy({ refusal: 403 })
    expect(await sentence(behind(strict.url, 'https://mcp.example.test/mcp'))).toContain(
      `the proxy ${strict.url} does not allow mcp.example.test (HTTP 403)`,
    )
    await using lost = await startProxy({ refusal: 502 })
    expect(await sentence(behind(lost.url, 'https://mcp.example.test/mcp'))).toContain(
      'reach mcp.example.test (HTTP 502)',
    )
    // Without TLS, it is unclear whether the server or the proxy rejected the request.
    const { head } = await ask(behind(strict.url, 'http://mcp.example.test/mcp'))
    const place = { name: 'files', origin: 'http://mcp.example.test', established: false }
    expect(rejectedRequest(place, head).message).toContain(`the proxy ${strict.url}`)
  })

  test('F10: cancelling a request to a proxy leaves no connection behind', async () => {
    const controller = new AbortController()
    const silent = createRawServer((socket) => void socket.on('data', () => controller.abort(new Error('enough'))))
    await new Promise<void>((listening) => silent.listen(0, '127.0.0.1', listening))
    onTestFinished(() => void silent.close())
    const channel = behind(`127.0.0.1:${(silent.address() as AddressInfo).port}`, 'https://mcp.example.test')
    const waiting = ask(channel, 'ping', controller.signal)
    await expect(waiting).rejects.toThrow('enough')
    await until(() => new Promise((count) => silent.getConnections((_, open) => count(open === 0))), {
      what: 'the end of all connections',
    })
  })
})
