import { afterEach, describe, expect, test } from 'vitest'
import { openChatServer } from '../openai/openai.fixture.ts'
import { openClient } from './client.fixture.ts'
import { initializeWith, openTestServer, token } from './server.fixture.ts'

let stack = new AsyncDisposableStack()
afterEach(async () => {
  await stack.disposeAsync()
  stack = new AsyncDisposableStack()
})

const body = JSON.stringify(initializeWith())

/** Sends these header lines; a Content-Length is added where there is a body. */
async function ask(port: number, line: string, headers: readonly string[], content = '') {
  const client = stack.use(await openClient(port))
  const length = content === '' ? [] : [`Content-Length: ${content.length}`]
  return client.ask([`${line} HTTP/1.1`, ...headers, ...length, '', content].join('\r\n'))
}

const good = (port: number) => [
  `Host: 127.0.0.1:${port}`,
  `Authorization: Bearer ${token}`,
  'Content-Type: application/json',
  'Accept: application/json, text/event-stream',
]

describe('B6: a header that has one value comes once', () => {
  test.each([
    ...['Host: evil.example.com', `AUTHORIZATION: Bearer ${token}`, 'authorization: Bearer another', 'Authorization:'],
    ...['Content-Type: application/json', 'Content-Type: text/plain', 'Content-Length: 3', 'Content-Encoding: gzip'],
  ])('a second line %j is a 400', async (line) => {
    const { server } = stack.use(await openTestServer())
    const once = good(server.port)
    expect((await ask(server.port, 'POST /mcp', once, body)).status).toBe(200)
    const more = line.startsWith('Content-Encoding') ? [line, 'content-encoding: identity'] : [line]
    expect((await ask(server.port, 'POST /mcp', [...more, ...once], body)).status).toBe(400)
    expect((await ask(server.port, 'POST /mcp', [...once, ...more], body)).status).toBe(400)
  })

  test.each([
    ...['Mcp-Session-Id', 'Mcp-Protocol-Version', 'Mcp-Method', 'Mcp-Name', 'Mcp-Param-Region', 'Toolway-Agent'],
    ...['Origin', 'Last-Event-ID', 'Cookie', 'Sec-Fetch-Site', 'Toolway-Admin', 'Transfer-Encoding'],
  ])('two lines of %s are a 400, even of one value', async (name) => {
    const { server } = stack.use(await openTestServer())
    const twice = [...good(server.port), `${name}: chunked`, `${name.toLowerCase()}: chunked`]
    expect((await ask(server.port, 'POST /mcp', twice)).status).toBe(400)
  })

  test('no number of other headers hides the second one', async () => {
    const { server } = stack.use(await openTestServer())
    const filler = Array.from({ length: 2_100 }, (_, index) => `${index.toString(36)}:`)
    const lines = [...good(server.port), ...filler, 'Host: evil.example.com']
    expect((await ask(server.port, 'POST /mcp', lines, body)).status).toBe(400)
  })

  test('headers that are lists may come in several lines', async () => {
    const { server } = stack.use(await openTestServer())
    const [host = '', credential = '', type = ''] = good(server.port)
    const accepts = ['Accept: application/json', 'Accept: text/event-stream']
    expect((await ask(server.port, 'POST /mcp', [host, credential, type, ...accepts], body)).status).toBe(200)
  })

  test('it holds at every endpoint', async () => {
    const { server } = stack.use(await openChatServer())
    const lines = [`Host: 127.0.0.1:${server.port}`, `Authorization: Bearer ${token}`, 'Authorization: Bearer other']
    for (const path of ['/mcp', '/v1/models', '/livez', '/nothing', '/admin/api/session', '/metrics', '/']) {
      expect([path, (await ask(server.port, `GET ${path}`, lines)).status]).toEqual([path, 400])
    }
  })
})

describe('B6: a body is JSON in UTF-8', () => {
  test.each([
    ...['application/json', 'Application/JSON; charset=utf-8', 'application/json;charset=UTF-8;', 'application/json ;'],
    ...[
      'application/json; charset="utf-8"',
      'application/json; charset="ut\\f-8"',
      'application/json; a="; charset=x"',
    ],
    ...['application/json; charset=utf8', 'application/json; profile=x; charset=Utf-8'],
  ])('%s is taken', async (type) => {
    const { raw } = stack.use(await openTestServer())
    expect((await raw({ body: initializeWith(), headers: { 'content-type': type } })).status).toBe(200)
  })

  test.each([
    ...['application/json; charset=utf-16', 'application/json; charset="UTF-16LE"', 'application/json;CHARSET=latin1'],
    ...['application/json; charset=utf-8; charset=utf-16', 'application/json; charset=utf-8; Charset=utf-8'],
    ...["application/json; charset='utf-8'", 'application/json; charset=', 'application/json; charset = utf-8'],
    ...[
      "application/json; charset*=utf-8''utf-16",
      'application/json; a="; charset=utf-7',
      'application/json, text/plain',
    ],
    ...['application/json5', 'text/json', '', `application/json${' ; '.repeat(40)}x`],
  ])('%j is a 415', async (type) => {
    const { raw } = stack.use(await openTestServer())
    expect((await raw({ body: initializeWith(), headers: { 'content-type': type } })).status).toBe(415)
  })
})

test('B6: a whole URL as the target is accepted, and its host counts instead of the Host header', async () => {
  const { server } = stack.use(await openTestServer())
  const { port } = server
  const status = async (target: string, [host = '', ...others] = good(port)) =>
    (await ask(port, `POST ${target}`, [host, ...others], body)).status
  expect(await status(`http://127.0.0.1:${port}/mcp`)).toBe(200)
  expect(await status(`HTTP://localhost:${port}/mcp?agent=default`)).toBe(200)
  expect(await status(`http://127.0.0.1:${port}/mcp`, ['Host: evil.example.com', ...good(port).slice(1)])).toBe(200)
  expect(await status('http://evil.example.com/mcp')).toBe(403)
  expect(await status(`http://evil@127.0.0.1:${port}/mcp`)).toBe(403)
  expect(await status(`http://127.0.0.1:${port}`)).toBe(404)
})
